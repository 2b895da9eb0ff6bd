// What is said of a project of which the database has nothing: it may be misspelt, so the projects
// that there are are named, the nearest first.

import { lettersApart } from "../../base/letters-apart.ts";
import type { OpenReader } from "../../effects/store/open.ts";
import { listProjects } from "../../projects/registry/commands.ts";
import { CommandError } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import type { EffectsCommand } from "./command.ts";

const namedMax = 10;
/** Names that are further apart are not taken for slips of each other. */
const slipsMax = 2;

/**
 * To be asked where nothing was found. Returns where the database has events of the project, or the
 * registry has the project; throws a CommandError where it is known to neither.
 */
export async function requireKnown(
  command: EffectsCommand,
  reader: OpenReader,
  project: string,
): Promise<void> {
  const applied = await reader.projects();
  if (applied.includes(project)) return;
  const registered = await registeredProjects(command).catch((): string[] => []);
  if (registered.includes(project)) return;
  throw new CommandError(unknownText(project, [...new Set([...applied, ...registered])]));
}

/** Rejects where NATS does not answer, or does not let this user read the registry. */
async function registeredProjects({ config, context }: EffectsCommand): Promise<string[]> {
  const connection = await openNats(findNats(config, context.host));
  try {
    const place = { prefix: config.subjectPrefix, replicas: config.replicas };
    return (await listProjects(connection, place)).map(({ id }) => id);
  } finally {
    await connection.close();
  }
}

export function unknownText(project: string, known: readonly string[]): string {
  const what = `there is no project ${project} here, and no event of one has been applied`;
  if (known.length === 0) return `${what}; nor of any other`;
  const apart = new Map(known.map((id) => [id, slipsBetween(project, id)]));
  const sorted = known.toSorted(
    (one, other) => apart.get(one)! - apart.get(other)! || (one < other ? -1 : 1),
  );
  const [nearest = ""] = sorted;
  const hint = apart.get(nearest)! <= slipsMax ? `: did you mean ${nearest}?` : ";";
  const more = known.length - namedMax;
  const named = `${sorted.slice(0, namedMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `${what}${hint} there ${known.length === 1 ? "is" : "are"} ${named}`;
}

/** Upper and lower case are no difference here: ids tell them apart, hands do not. */
function slipsBetween(one: string, other: string): number {
  return lettersApart(one.toLowerCase(), other.toLowerCase());
}
