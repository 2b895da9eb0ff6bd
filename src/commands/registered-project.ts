// Runs commands on the registry, with errors for a project id that is invalid or unknown. They list
// the known projects, most similar first.

import type { NatsConnection } from "@nats-io/nats-core";
import { type BucketPlace, UnknownProjectError } from "../gateway/projects/registry/bucket.ts";
import { hasEntry, listProjects } from "../gateway/projects/registry/commands.ts";
import { isProjectId } from "../platform/base/forms.ts";
import { lettersApart } from "../platform/base/near-name.ts";
import { countMessages } from "../platform/nats/api.ts";
import { manyProjects, subjectOf } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";
import { findStreams } from "../readers/stream/stored-stream.ts";
import { audited } from "./audit.ts";
import { CommandError, type ConfiguredCommand, usageExitCode } from "./context.ts";
import { managerFor, withNats } from "./nats.ts";

const namedMax = 10;
const typosMax = 2;

interface Required {
  readonly command: string;
  readonly project: string;
}

export function mustBeProjectId(text: string): void {
  if (isProjectId(text)) return;
  const what = `the project's id must match [A-Za-z0-9_-]{1,64} (got "${text}")`;
  throw new CommandError(what, usageExitCode);
}

/** Runs a check of arguments, whose errors become usage errors. */
export function requireArguments(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new CommandError((error as Error).message, usageExitCode);
  }
}

/** Runs a change like `atRegistry`, with an entry in the audit log. */
export function changedRegistry<T>(
  command: ConfiguredCommand,
  entry: Parameters<typeof audited>[1],
  work: (connection: NatsConnection, place: BucketPlace) => Promise<T>,
): Promise<T> {
  return atRegistry(command, (connection, place) =>
    audited(command, entry, () => work(connection, place)),
  );
}

/** Runs `work` on the registry. The error of an unknown project lists the known projects. */
export async function atRegistry<T>(
  command: ConfiguredCommand,
  work: (connection: NatsConnection, place: BucketPlace) => Promise<T>,
): Promise<T> {
  const { subjectPrefix: prefix, replicas, hubDomain } = command.config;
  return await withNats(command, async (connection) => {
    try {
      return await work(connection, { prefix, replicas, hubDomain });
    } catch (error) {
      if (!(error instanceof UnknownProjectError)) throw error;
      const known = await registeredProjects(connection, command.config);
      throw new CommandError(unknownText(error.message, error.projectId, known));
    }
  });
}

/**
 * Rejects with a CommandError if the project is neither in the registry nor in a stream. The
 * streams are checked, because a project that was removed from the registry may still have events.
 */
export async function mustBeKnown(
  connection: NatsConnection,
  config: Config,
  { command, project }: Required,
): Promise<void> {
  const known = await registeredProjects(connection, config);
  if (known.includes(project)) return;
  if (await hasEntry(connection, { id: project, ...config, prefix: config.subjectPrefix })) return;
  if (await hasEvents(connection, config.subjectPrefix, project)) return;
  const text = unknownText(`${command}: there is no project ${project}`, project, known);
  if (!(await hasEvents(connection, config.subjectPrefix, manyProjects)))
    throw new CommandError(text);
  const hint =
    "if the project was removed, and messages of several projects still contain its events, first add the project again";
  throw new CommandError(`${text}; ${hint}`);
}

async function hasEvents(
  connection: NatsConnection,
  prefix: string,
  projectId: string,
): Promise<boolean> {
  const manager = await managerFor(connection);
  for (const { stream, lane, partition } of await findStreams(manager, prefix)) {
    const subject = subjectOf(prefix, lane, { partition, projectId });
    if ((await countMessages(manager, stream, subject)) > 0) return true;
  }
  return false;
}

/** Returns the projects. Rejects if NATS does not respond or refuses the request. */
export async function registeredProjects(
  connection: NatsConnection,
  { subjectPrefix: prefix, replicas, hubDomain }: Config,
): Promise<string[]> {
  return (await listProjects(connection, { prefix, replicas, hubDomain })).map(({ id }) => id);
}

/** Returns an error that lists the known names, the most similar ones first. */
export function unknownText(
  what: string,
  name: string,
  known: readonly string[],
  noun = "project",
): string {
  if (known.length === 0) return `${what}; there are no ${noun}s`;
  const apart = new Map(known.map((id) => [id, typosBetween(name, id)]));
  const sorted = known.toSorted(
    (one, other) => apart.get(one)! - apart.get(other)! || (one < other ? -1 : 1),
  );
  const [nearest = ""] = sorted;
  const hint = apart.get(nearest)! <= typosMax ? `: did you mean ${nearest}?` : ";";
  const more = known.length - namedMax;
  const named = `${sorted.slice(0, namedMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `${what}${hint} the ${known.length === 1 ? `only ${noun} is` : `${noun}s are`} ${named}`;
}

function typosBetween(one: string, other: string): number {
  return lettersApart(one.toLowerCase(), other.toLowerCase());
}
