// Queries the state of a stream and single messages from JetStream. Read only.

import type { JetStreamManager, MsgRequest, StoredMsg } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import { ledStreamInfo } from "../../platform/nats/api.ts";
import { lanes, messageIdHeader, streamName } from "../../platform/nats/names.ts";
import { msOfTime, storedText } from "./frame.ts";

export interface StreamName {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
}

export interface StreamState {
  /** Time when the stream was created, as the server reports it. */
  readonly created: string;
  /** Sequence of the first message; if the stream has no messages, the next sequence. */
  readonly firstSequence: number;
  /** Last sequence that the stream assigned; 0 if it has assigned no sequence. */
  readonly lastSequence: number;
  /** Sequence of the first message that the stream ever had. */
  readonly beginsAt: number;
}

export interface StoredMessage {
  readonly sequence: number;
  readonly messageId: string;
  readonly storedAtMs: number;
}

/** Queries for the checks of a stream. Each method rejects if NATS does not answer. */
export interface AskedStream {
  /** Returns the state of the stream; undefined if the stream does not exist. */
  state(): Promise<StreamState | undefined>;
  /** Returns the message with the sequence; undefined if the stream does not have it. */
  message(sequence: number): Promise<StoredMessage | undefined>;
  /** Returns the first message with this sequence or a greater one. */
  messageFrom(sequence: number): Promise<StoredMessage | undefined>;
}

/**
 * Returns the identity of a message: its message id; without an id, the time when it was stored.
 */
export function messageIdOf(header: string | undefined, storedAtMs: number): string {
  return header === undefined || header === "" ? `@${storedAtMs}` : storedText(header);
}

export function storedStream(manager: JetStreamManager, name: string): AskedStream {
  const read = async (query: MsgRequest & NextBySubject): Promise<StoredMessage | undefined> => {
    const message = await manager.streams.getMessage(name, query);
    return message === null ? undefined : toStoredMessage(message);
  };
  return {
    async state() {
      const info = await ledStreamInfo(manager, name);
      if (info === undefined) return undefined;
      const { created, state, config } = info;
      return {
        created,
        firstSequence: Math.max(1, state.first_seq),
        lastSequence: state.last_seq,
        beginsAt: Math.max(1, config.first_seq ?? 1),
      };
    },
    message: async (sequence) => await read({ seq: sequence }),
    messageFrom: async (sequence) => await read({ seq: sequence, next_by_subj: ">" }),
  };
}

function toStoredMessage({ seq, header, timestamp }: StoredMsg): StoredMessage {
  const storedAtMs = msOfTime(timestamp);
  return {
    sequence: seq,
    messageId: messageIdOf(header?.get(messageIdHeader), storedAtMs),
    storedAtMs,
  };
}

/**
 * Maximum number of deleted sequences that the server is asked to list. Each takes about ten bytes.
 */
const deletedNamedMax = 1_000_000;

/**
 * Returns the deleted sequences between the first and the last message, in order; empty if there
 * are more than 1,000,000.
 */
export async function deletedSequences(
  manager: JetStreamManager,
  name: string,
): Promise<readonly number[]> {
  const { num_deleted: count = 0 } = (await manager.streams.info(name)).state;
  if (count === 0 || count > deletedNamedMax) return [];
  const { deleted = [] } = (await manager.streams.info(name, { deleted_details: true })).state;
  return deleted;
}

interface NextBySubject {
  readonly next_by_subj?: string;
}

/** Returns the existing streams of both lanes and all partitions, live first. */
export async function findStreams(
  manager: JetStreamManager,
  prefix: string,
): Promise<StreamName[]> {
  const found: StreamName[] = [];
  for (const lane of lanes) {
    for await (const stream of manager.streams.names(`${prefix}.${lane}.>`)) {
      const partition = Number(/_(\d+)$/.exec(stream)?.[1] ?? Number.NaN);
      if (stream === streamName(prefix, lane, partition)) found.push({ stream, lane, partition });
    }
  }
  return found.sort(inOrder);
}

function inOrder(a: StreamName, b: StreamName): number {
  return lanes.indexOf(a.lane) - lanes.indexOf(b.lane) || a.partition - b.partition;
}
