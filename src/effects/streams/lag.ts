// How far the database is behind the streams: asks NATS what each stream has, beside what is
// applied of it. For commands, which run whether or not the process does.

import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../nats/api.ts";
import type { AppliedStream } from "../store/port.ts";
import type { Position } from "../types.ts";
import { resume } from "./resume.ts";
import {
  type AskedStream,
  findStreams,
  type StreamName,
  type StreamState,
  storedStream,
} from "./stored-stream.ts";

export interface StreamStatus extends StreamName {
  readonly epoch: number;
  /** The last frame that is applied; 0: none. */
  readonly sequence: number;
  /** The last frame of the stream; undefined: not known. */
  readonly lastSequence: number | undefined;
  /** How long the oldest frame that is not applied has been stored; 0: all are applied. */
  readonly lagSeconds: number | undefined;
}

const questionMs = 2_000;

/** Undefined: not known. */
export function lagMessages({ sequence, lastSequence }: StreamStatus): number | undefined {
  return lastSequence === undefined ? undefined : Math.max(0, lastSequence - sequence);
}

/** The streams that there are, and those that were applied. Rejects when NATS does not answer. */
export async function streamStatuses(
  connection: NatsConnection,
  { prefix, applied, nowMs }: { prefix: string; applied: readonly Position[]; nowMs: number },
): Promise<StreamStatus[]> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  const known = new Map(applied.map((one) => [one.stream, one]));
  const there = await findStreams(manager, prefix);
  const gone = applied.filter(({ stream }) => there.every((one) => one.stream !== stream));
  const found = await Promise.all(
    there.map(async (name): Promise<StreamStatus> => {
      const asked = storedStream(manager, name.stream);
      const state = await asked.state();
      const place = await placeIn(asked, state, known.get(name.stream));
      const unknown = { lastSequence: undefined, lagSeconds: undefined };
      if (state === undefined) return { ...name, ...place, ...unknown };
      const { lastSequence } = state;
      const isBehind = lastSequence > place.sequence;
      const next = isBehind ? await asked.messageFrom(place.sequence + 1) : undefined;
      const lagMs = next === undefined ? 0 : Math.max(0, nowMs - next.storedAtMs);
      return { ...name, ...place, lastSequence, lagSeconds: lagMs / 1_000 };
    }),
  );
  return [...found, ...gone.map(withoutLag)];
}

/**
 * How far the stream is applied that is there now. In one that was made anew, or is an older copy,
 * the sequence of the database says nothing: it is where the writer will go on.
 */
async function placeIn(
  asked: AskedStream,
  state: StreamState | undefined,
  position: Position | undefined,
): Promise<Pick<StreamStatus, "epoch" | "sequence">> {
  if (position === undefined) return { epoch: 1, sequence: 0 };
  const { epoch, sequence } = position;
  if (state === undefined) return { epoch, sequence };
  const { place } = await resume(position, asked, state, { acceptExpired: true });
  const isOther = place.epoch !== epoch || place.sequence < sequence;
  return isOther ? { epoch: place.epoch, sequence: place.sequence } : { epoch, sequence };
}

/** What is known of a stream while NATS is not asked. */
export function withoutLag({
  stream,
  lane,
  partition,
  epoch,
  sequence,
}: AppliedStream): StreamStatus {
  const unknown = { lastSequence: undefined, lagSeconds: undefined };
  return { stream, lane, partition, epoch, sequence, ...unknown };
}
