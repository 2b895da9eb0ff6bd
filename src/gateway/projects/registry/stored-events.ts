// Reads which projects have events in the streams under the prefix. Events are stored only for
// projects in the registry. So a registry with neither an entry nor a deletion marker for a project
// with stored events has lost that project. Changes nothing.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import { isFromLeader, managerOf, NoLeaderError } from "../../../platform/nats/api.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { registryTimeoutMs } from "./bucket-state.ts";

export interface StoredEvents {
  /** Whether the streams have ever had events, even if all of them have been removed since. */
  readonly any: boolean;
  /**
   * Ids of the projects that have events in the streams now. Excludes projects whose events share
   * messages with other projects' events, because the subject of such a message names no project.
   */
  readonly projectIds: ReadonlySet<string>;
}

export const nothingStored: StoredEvents = { any: false, projectIds: new Set() };

/**
 * Maximum number of concurrent stream queries. Sequential queries would delay a start with many
 * partitions.
 */
const askedAtOnce = 16;

/**
 * Returns whether any of the streams has ever had an event, by its last sequence. Rejects if
 * JetStream or a stream's leader does not answer. Not for a leaf's streams, which begin at a
 * sequence derived from the time.
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

/** Like `haveEventsBeenStored`, but also returns the projects of the stored events. */
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
  /** The sequence of the newest entry, even if the entry was removed. */
  readonly lastSequence: number;
  readonly entries: number;
}

/**
 * Returns what an empty bucket has lost, as far as a process that has never read it before can
 * detect. Returns undefined if the bucket has entries, or if there is no sign of a loss.
 */
export function lossOfAll(
  { lastSequence, entries }: BucketExtent,
  stored: StoredEvents,
): string | undefined {
  if (entries > 0) return undefined;
  if (lastSequence > 0)
    return "its entries are gone, and it has no markers of their projects' deletion";
  return stored.any
    ? "it never had a project, but the streams contain events of projects"
    : undefined;
}
