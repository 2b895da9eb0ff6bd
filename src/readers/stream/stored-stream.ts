import type { JetStreamManager, MsgRequest, StreamInfo } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import { ledStreamInfo } from "../../platform/nats/api.ts";
import {
  lanes,
  messageIdHeader,
  rejectedLane,
  type StreamLane,
  streamName,
} from "../../platform/nats/names.ts";
import { msOfTime, storedText } from "./frame.ts";

export interface StreamName<AnyLane extends StreamLane = Lane> {
  readonly stream: string;
  readonly lane: AnyLane;
  readonly partition: number;
}

export interface StreamState {
  readonly created: string;
  /** Sequence of the first message. In an empty stream, the sequence of the next message. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly beginsAt: number;
}

export interface StoredMessage {
  readonly sequence: number;
  readonly messageId: string;
  readonly storedAtMs: number;
}

/** Queries a stream. All methods reject if NATS does not respond. */
export interface AskedStream {
  state(): Promise<StreamState | undefined>;
  message(sequence: number): Promise<StoredMessage | undefined>;
  messageFrom(sequence: number): Promise<StoredMessage | undefined>;
}

/** Returns the id in the header. If there is no id, returns a text with the timestamp. */
export function messageIdOf(header: string | undefined, storedAtMs: number): string {
  return header === undefined || header === "" ? `@${storedAtMs}` : storedText(header);
}

export function stateOf({ created, state, config }: StreamInfo): StreamState {
  return {
    created,
    firstSequence: Math.max(1, state.first_seq),
    lastSequence: state.last_seq,
    beginsAt: Math.max(1, config.first_seq ?? 1),
  };
}

export function storedStream(manager: JetStreamManager, name: string): AskedStream {
  const read = async (
    query: MsgRequest & { next_by_subj?: string },
  ): Promise<StoredMessage | undefined> => {
    const message = await manager.streams.getMessage(name, query);
    if (message === null) return undefined;
    const { seq: sequence, header, timestamp } = message;
    const storedAtMs = msOfTime(timestamp);
    return {
      sequence,
      messageId: messageIdOf(header?.get(messageIdHeader), storedAtMs),
      storedAtMs,
    };
  };
  return {
    async state() {
      const info = await ledStreamInfo(manager, name);
      return info === undefined ? undefined : stateOf(info);
    },
    message: async (sequence) => await read({ seq: sequence }),
    messageFrom: async (sequence) => await read({ seq: sequence, next_by_subj: ">" }),
  };
}

/** Maximum number of deleted sequences to list. Each takes about ten bytes of the response. */
const deletedNamedMax = 1_000_000;

/** Returns the deleted sequences in order, or an empty array if there are over 1,000,000. */
export async function deletedSequences(
  manager: JetStreamManager,
  name: string,
): Promise<readonly number[]> {
  const { num_deleted: count = 0 } = (await manager.streams.info(name)).state;
  if (count === 0 || count > deletedNamedMax) return [];
  const { deleted = [] } = (await manager.streams.info(name, { deleted_details: true })).state;
  return deleted;
}

/** Returns the streams of events: of both lanes and all partitions, live first. */
export async function findStreams(
  manager: JetStreamManager,
  prefix: string,
): Promise<StreamName[]> {
  return await streamsOfLanes(manager, prefix, lanes);
}

/** Returns the streams of rejected items, of all partitions. */
export async function findRejectedStreams(
  manager: JetStreamManager,
  prefix: string,
): Promise<StreamName<typeof rejectedLane>[]> {
  return await streamsOfLanes(manager, prefix, [rejectedLane]);
}

async function streamsOfLanes<AnyLane extends StreamLane>(
  manager: JetStreamManager,
  prefix: string,
  wanted: readonly AnyLane[],
): Promise<StreamName<AnyLane>[]> {
  const found: StreamName<AnyLane>[] = [];
  for (const lane of wanted) {
    for await (const stream of manager.streams.names(`${prefix}.${lane}.>`)) {
      const partition = Number(/_(\d+)$/.exec(stream)?.[1] ?? Number.NaN);
      if (stream === streamName(prefix, lane, partition)) found.push({ stream, lane, partition });
    }
  }
  return found.sort(
    (a, b) => wanted.indexOf(a.lane) - wanted.indexOf(b.lane) || a.partition - b.partition,
  );
}
