// What the streams under the prefix say of projects. Only a project's events are stored, so a
// registry that says nothing of a project with stored events, neither that it is there nor that it
// was deleted, has lost it. Must not change anything.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isFromLeader, managerOf, NoLeaderError } from "../../nats/api.ts";
import { lanes } from "../../nats/names.ts";
import { isProjectId } from "../registry/bucket.ts";
import { registryTimeoutMs } from "../registry/bucket-state.ts";

export interface StoredEvents {
  /** Whether there were events ever, also when they have left since. */
  readonly any: boolean;
  /**
   * The projects that have events in the streams now, but for those whose events share messages
   * with other projects': the subject of such a message names nobody.
   */
  readonly projectIds: ReadonlySet<string>;
}

export const nothingStored: StoredEvents = { any: false, projectIds: new Set() };

/**
 * Streams that are asked at once: with many partitions one after another takes a start too long.
 */
const askedAtOnce = 16;

/**
 * Rejects when somebody who must know does not answer. Not for a leaf's streams, which begin at a
 * sequence made of the time.
 */
export async function haveEventsBeenStored(
  connection: NatsConnection,
  prefix: string,
): Promise<boolean> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  for (const { name } of await streamsOf(manager, prefix)) {
    if ((await ledInfo(manager, name)).state.last_seq > 0) return true;
  }
  return false;
}

/** As haveEventsBeenStored, and whose events they are. */
export async function storedEvents(
  connection: NatsConnection,
  prefix: string,
): Promise<StoredEvents> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const streams = await streamsOf(manager, prefix);
  const projectIds = new Set<string>();
  let any = false;
  for (let at = 0; at < streams.length; at += askedAtOnce) {
    const asked = streams
      .slice(at, at + askedAtOnce)
      .map(({ name, subjects }) => ledInfo(manager, name, subjects));
    for (const { state } of await Promise.all(asked)) {
      any ||= state.last_seq > 0;
      for (const subject of Object.keys(state.subjects ?? {})) {
        const id = subject.slice(subject.lastIndexOf(".") + 1);
        if (isProjectId(id)) projectIds.add(id);
      }
    }
  }
  return { any, projectIds };
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
  subjects?: string,
): Promise<StreamInfo> {
  const info = await manager.streams.info(
    name,
    subjects === undefined ? undefined : { subjects_filter: subjects },
  );
  if (!isFromLeader(info)) throw new NoLeaderError(name);
  return info;
}

export interface BucketExtent {
  /** The newest entry's, also when that entry is gone. */
  readonly lastSequence: number;
  readonly entries: number;
}

/**
 * What a bucket without entries has lost, to one who has never read it before; undefined when
 * nothing says that it has lost anything.
 */
export function lossOfAll(
  { lastSequence, entries }: BucketExtent,
  stored: StoredEvents,
): string | undefined {
  if (entries > 0) return undefined;
  if (lastSequence > 0)
    return "its entries are gone, and nothing in it says that their projects were deleted";
  return stored.any
    ? "no project was ever in it, but the streams hold events of projects"
    : undefined;
}
