// The mark of a bucket that has lost projects. It stays in the bucket from the detection of the
// loss until an operator declares the registry complete. Without it, the loss of the other projects
// could not be detected after the first project is added again. The mark is an entry that cannot be
// a project's, so that it is copied together with the entries.

import type { NatsConnection } from "@nats-io/nats-core";
import { type BucketPlace, bucketName } from "./bucket.ts";
import { type BucketEntry, bucketReader } from "./bucket-state.ts";
import { writeEntry } from "./entry-write.ts";
import { ProjectError } from "./project-arguments.ts";
import { lossOfAll, type StoredEvents, storedEvents } from "./stored-events.ts";

/** The key of the mark's entry. It has a dot, unlike a project's id. */
export const lossMark = "registry.incomplete";

/** The advice to an operator whose registry has lost projects. */
export const lossAdvice =
  "restore it from a backup, or add every project again with its key and then run `penstock project complete`";

/** Returns whether the registry has not yet been declared complete. */
export function isMarked(entries: ReadonlyMap<string, Pick<BucketEntry, "operation">>): boolean {
  return entries.get(lossMark)?.operation === "PUT";
}

/**
 * Marks the bucket if it is empty and has lost its content. Must be called before anything is added
 * to the bucket. Does nothing on a leaf node: its streams do not show a loss, and its registry is
 * the hub's.
 */
export async function markLoss(
  connection: NatsConnection,
  place: BucketPlace,
  askStoredEvents: () => Promise<StoredEvents> = () => storedEvents(connection, place.prefix),
): Promise<void> {
  if (place.hubDomain !== undefined) return;
  const reader = await bucketReader(connection, bucketName(place.prefix));
  await writeEntry(connection, place, async () => {
    const state = await reader.state();
    if (state === undefined || state.entries > 0) return undefined;
    if (lossOfAll(state, await askStoredEvents()) === undefined) return undefined;
    const value = JSON.stringify({ noticed: new Date().toISOString() });
    return { key: lossMark, value, expect: { lastSequence: state.lastSequence } };
  });
}

/** Returns the projects with events in the streams that have no entry in the bucket. */
export async function projectsLacking(
  connection: NatsConnection,
  place: BucketPlace,
  entries: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  if (place.hubDomain !== undefined) return [];
  const { projectIds } = await storedEvents(connection, place.prefix);
  return [...projectIds].filter((id) => !entries.has(id));
}

const namedMax = 10;

/** Throws a ProjectError that names the projects that the registry lacks, if there are any. */
export function requireNoneLacking(lacking: readonly string[]): void {
  if (lacking.length === 0) return;
  const more = lacking.length > namedMax ? ", …" : "";
  throw new ProjectError(
    `the registry lacks projects with events in the streams (${lacking.slice(0, namedMax).join(", ")}${more}): add each again, or write a deletion marker for one that should not exist (\`nats kv del <prefix>_projects <id>\`)`,
  );
}
