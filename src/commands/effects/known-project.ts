import type { OpenReader } from "../../readers/effects/store/open.ts";
import type { ConfiguredCommand } from "../configured-command.ts";
import { CommandError } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { registeredProjects, unknownText } from "../registered-project.ts";

/** Throws a CommandError if neither the database nor the registry has the project. */
export async function requireKnown(
  command: ConfiguredCommand,
  reader: OpenReader,
  project: string,
): Promise<void> {
  const applied = await reader.projects();
  if (applied.includes(project)) return;
  const registered = await askedProjects(command).catch((): string[] => []);
  if (registered.includes(project)) return;
  const what = `there is no project ${project}, and no event of it has been applied`;
  throw new CommandError(unknownText(what, project, [...new Set([...applied, ...registered])]));
}

async function askedProjects({ config, context }: ConfiguredCommand): Promise<string[]> {
  const connection = await openNats(findNats(config, context.host));
  try {
    return await registeredProjects(connection, config);
  } finally {
    await connection.close();
  }
}
