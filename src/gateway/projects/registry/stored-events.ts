// What the streams under the prefix say of projects. Events are stored only for projects that the
// registry has. So a registry that says nothing of a project with stored events, neither that it
// exists nor that it was deleted, has lost that project. Must not change anything.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import { isFromLeader, managerOf, NoLeaderError } from "../../../platform/nats/api.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { registryTimeoutMs } from "./bucket-state.ts";

export interface StoredEvents {
  /** Whether the streams have ever had events, also when all of them have left since. */
  readonly any: boolean;
  /**
   * The projects that have events in the streams now, but for those whose events share messages
   * with other projects': the subject of such a message names nobody.
   */
  readonly projectIds: ReadonlySet<string>;
}

export const nothingStored: StoredEvents = { any: false, projectIds: new Set() };

/**
 * How many streams are asked at once: one after another, many partitions would make a start take
 * too long.
 */
const askedAtOnce = 16;

/**
 * Whether any of the streams has ever had an event, by its last sequence. Rejects when JetStream or
 * a stream's leader does not answer. Not for a leaf's streams: they begin at a sequence made of the
 * time.
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

/** As haveEventsBeenStored, and also which projects the stored events are of. */
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

interface BucketExtent {
  /** The sequence of the newest entry, also when that entry is gone. */
  readonly lastSequence: number;
  readonly entries: number;
}

/**
 * What an empty bucket has lost, as far as a process can tell that has never read it before.
 * Undefined when the bucket has entries, or nothing says that it has lost any.
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
