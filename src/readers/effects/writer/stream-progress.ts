// How far the store is behind a stream, in messages and in time. What is not applied is in this
// order: with the commit on its way, in the batch at hand, read and not taken, not read.

import type { StreamReader } from "../../stream/stream-reader.ts";
import { lagSecondsSince, type StreamStatus } from "../streams/lag.ts";
import type { Batch } from "./batch.ts";
import type { Reached } from "./reached.ts";

export interface StreamProgress extends StreamStatus {
  /** Why it is not read at the moment. */
  readonly fault: string | undefined;
}

interface Work {
  readonly reached: Reached;
  /** Those that hold frames uncommitted, the older one first. */
  readonly batches: readonly Pick<Batch, "storedAtMs">[];
  readonly nowMs: number;
}

export function streamProgress(
  reader: StreamReader,
  { reached, batches, nowMs }: Work,
): StreamProgress {
  const { name, fault, lastSequence } = reader;
  const { epoch = 1, sequence = 0, watermarkMs = 0 } = reached.of(name.stream) ?? {};
  const common = { ...name, epoch, sequence, lastSequence, fault };
  if (lastSequence === undefined) return { ...common, lagSeconds: undefined };
  if (lastSequence <= sequence) return { ...common, lagSeconds: 0 };
  const taken = batches.map((batch) => batch.storedAtMs(name.stream));
  // What was not read came after what is applied: no more is known of it.
  const appliedMs = watermarkMs === 0 ? nowMs : watermarkMs;
  const known = [...taken, reader.readyStoredAtMs, appliedMs];
  const sinceMs = known.find((storedAtMs) => storedAtMs !== undefined)!;
  return { ...common, lagSeconds: lagSecondsSince(sinceMs, nowMs) };
}
