// If the registry loses projects, this mark is written. It stays until an operator declares the
// registry complete. Without it, nothing would show the loss after a lost project is added again.
// The mark is an entry of the bucket, so that copies of the bucket contain it.

import type { JetStreamManager, StreamInfo, StreamInfoRequestOptions } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import { isFromLeader, managerOf, NoLeaderError } from "../../../platform/nats/api.ts";
import { lanes } from "../../../platform/nats/names.ts";
import {
  type BucketEntry,
  type BucketPlace,
  type BucketState,
  bucketName,
  bucketReader,
  ProjectError,
  registryTimeoutMs,
} from "./bucket.ts";
import { writeEntry } from "./entry-write.ts";

/** A project id cannot contain a dot, so this key differs from all project ids. */
export const lossMark = "registry.incomplete";

export const lossAdvice =
  "restore the registry from a backup, or add every project again with its key and then run `penstock project complete`";

export function isMarked(entries: ReadonlyMap<string, Pick<BucketEntry, "operation">>): boolean {
  return entries.get(lossMark)?.operation === "PUT";
}

/**
 * Must be called before an entry is added. Does nothing on a leaf node: its hub has the registry.
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

const namedMax = 10;

/** Throws a ProjectError if the streams contain events of a project that has no entry. */
export async function requireNoneLacking(
  connection: NatsConnection,
  place: BucketPlace,
  entries: ReadonlyMap<string, unknown>,
): Promise<void> {
  if (place.hubDomain !== undefined) return;
  const { projectIds } = await storedEvents(connection, place.prefix);
  const lacking = [...projectIds].filter((id) => !entries.has(id));
  if (lacking.length === 0) return;
  const more = lacking.length > namedMax ? ", …" : "";
  throw new ProjectError(
    `the registry lacks projects with events in the streams (${lacking.slice(0, namedMax).join(", ")}${more}): add each again, or remove one that should not exist (\`penstock project remove <id>\`)`,
  );
}

export interface StoredEvents {
  readonly any: boolean;
  /**
   * The projects that have events in the streams. A project is not included if all its events are
   * in messages with events of several projects.
   */
  readonly projectIds: ReadonlySet<string>;
}

export const nothingStored: StoredEvents = { any: false, projectIds: new Set() };

const askedAtOnce = 16;

/** Must not be called for a leaf node's streams, because their sequences do not begin at 1. */
export async function storedEvents(
  connection: NatsConnection,
  prefix: string,
): Promise<StoredEvents> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const streams = await streamsOf(manager, prefix);
  const ask = ({ name, subjects }: LaneStream) =>
    ledInfo(manager, name, { subjects_filter: subjects });
  const projectIds = new Set<string>();
  let any = false;
  for (let at = 0; at < streams.length; at += askedAtOnce) {
    for (const { state } of await Promise.all(streams.slice(at, at + askedAtOnce).map(ask))) {
      any ||= state.last_seq > 0;
      for (const subject of Object.keys(state.subjects ?? {})) {
        const id = subject.slice(subject.lastIndexOf(".") + 1);
        if (isProjectId(id)) projectIds.add(id);
      }
    }
  }
  return { any, projectIds };
}

/**
 * Returns whether any events have been stored. It is faster than `storedEvents`, because it does
 * not list the subjects.
 */
export async function haveEventsBeenStored(
  connection: NatsConnection,
  prefix: string,
): Promise<boolean> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  for (const { name } of await streamsOf(manager, prefix))
    if ((await ledInfo(manager, name)).state.last_seq > 0) return true;
  return false;
}

interface LaneStream {
  readonly name: string;
  readonly subjects: string;
}

async function streamsOf(manager: JetStreamManager, prefix: string): Promise<LaneStream[]> {
  const found: LaneStream[] = [];
  for (const lane of lanes) {
    const subjects = `${prefix}.${lane}.>`;
    for await (const name of manager.streams.names(subjects)) found.push({ name, subjects });
  }
  return found;
}

async function ledInfo(
  manager: JetStreamManager,
  name: string,
  options?: Partial<StreamInfoRequestOptions>,
): Promise<StreamInfo> {
  const info = await manager.streams.info(name, options);
  if (!isFromLeader(info)) throw new NoLeaderError(name);
  return info;
}

/** Describes the loss if an empty bucket once had projects. Otherwise, returns undefined. */
export function lossOfAll(
  { lastSequence, entries }: Pick<BucketState, "lastSequence" | "entries">,
  stored: StoredEvents,
): string | undefined {
  if (entries > 0) return undefined;
  if (lastSequence > 0) return "its entries are missing without deletion markers";
  return stored.any
    ? "it never had a project, but the streams contain events of projects"
    : undefined;
}
