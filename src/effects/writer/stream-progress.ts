// How far the store is behind a stream, in messages and in time.

import type { StreamName } from "../streams/stored-stream.ts";
import type { StreamReader } from "../streams/stream-reader.ts";
import type { Reached } from "./reached.ts";

export interface StreamProgress extends StreamName {
  readonly epoch: number;
  /** The last frame that is applied in the store. */
  readonly sequence: number;
  /** The last frame of the stream; undefined while NATS does not say. */
  readonly lastSequence: number | undefined;
  /**
   * For how long the oldest frame that is not applied has been stored; 0 when all are, undefined
   * while NATS does not say.
   */
  readonly lagSeconds: number | undefined;
  /** Why it is not read at the moment. */
  readonly fault: string | undefined;
}

export function streamProgress(
  reader: StreamReader,
  reached: Reached,
  nowMs: number,
): StreamProgress {
  const { name, fault, lastSequence } = reader;
  const { epoch = 1, sequence = 0, watermarkMs = 0 } = reached.of(name.stream) ?? {};
  const common = { ...name, epoch, sequence, lastSequence, fault };
  if (lastSequence === undefined) return { ...common, lagSeconds: undefined };
  if (lastSequence <= sequence) return { ...common, lagSeconds: 0 };
  // What was not read came after what is applied: no more is known of it.
  const appliedMs = watermarkMs === 0 ? nowMs : watermarkMs;
  const sinceMs = reader.storedAtBehind(sequence) ?? appliedMs;
  return { ...common, lagSeconds: Math.max(0, nowMs - sinceMs) / 1_000 };
}
