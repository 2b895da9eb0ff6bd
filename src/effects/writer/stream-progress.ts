// How far the store is behind a stream, in messages and in time.

import type { StreamReader } from "../../reading/stream-reader.ts";
import { lagSecondsSince, type StreamStatus } from "../streams/lag.ts";
import type { Reached } from "./reached.ts";

export interface StreamProgress extends StreamStatus {
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
  return { ...common, lagSeconds: lagSecondsSince(sinceMs, nowMs) };
}
