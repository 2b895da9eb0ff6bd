import type { StreamReader } from "../../stream/stream-reader.ts";
import { lagSecondsSince, type StreamStatus } from "../streams/lag.ts";
import type { Position } from "../types.ts";
import type { Batch } from "./transaction.ts";

interface Waiting {
  readonly stream: string;
  readonly sequence: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const endedText = "cannot wait for a position: the writer has ended";

export class Reached {
  #positions = new Map<string, Position>();
  #waiting: Waiting[] = [];
  #isClosed = false;
  readonly #onWaiting: () => void;

  constructor(onWaiting: () => void = () => {}) {
    this.#onWaiting = onWaiting;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  of(stream: string): Position | undefined {
    return this.#positions.get(stream);
  }

  begin(positions: readonly Position[]): void {
    this.#positions = new Map();
    this.reach(positions);
  }

  reach(positions: readonly Position[]): void {
    for (const position of positions) this.#positions.set(position.stream, position);
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((one) => !this.#isReached(one.stream, one.sequence));
    for (const one of waiting) if (this.#isReached(one.stream, one.sequence)) one.resolve();
  }

  async until(stream: string, sequence: number, signal?: AbortSignal): Promise<void> {
    if (this.#isReached(stream, sequence)) return;
    signal?.throwIfAborted();
    if (this.#isClosed) throw new Error(endedText);
    await new Promise<void>((resolve, reject) => {
      const waiting = { stream, sequence, resolve, reject };
      this.#waiting.push(waiting);
      this.#onWaiting();
      const gone = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", gone, { once: true });
    });
  }

  close(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#isClosed = true;
    for (const { reject } of waiting) reject(new Error(endedText));
  }

  #isReached(stream: string, sequence: number): boolean {
    return (this.#positions.get(stream)?.sequence ?? 0) >= sequence;
  }
}

export interface StreamProgress extends StreamStatus {
  readonly fault: string | undefined;
}

interface Work {
  readonly reached: Reached;
  readonly batches: readonly Pick<Batch, "storedAtMs">[];
  readonly nowMs: number;
}

/**
 * Returns the lag of the store in a stream. The lag is the age of the oldest unapplied frame. The
 * frame may be unread, in a batch, or in a running commit.
 */
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
  const appliedMs = watermarkMs === 0 ? nowMs : watermarkMs;
  const known = [...taken, reader.readyStoredAtMs, appliedMs];
  const sinceMs = known.find((storedAtMs) => storedAtMs !== undefined)!;
  return { ...common, lagSeconds: lagSecondsSince(sinceMs, nowMs) };
}
