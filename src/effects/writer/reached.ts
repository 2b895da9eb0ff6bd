// How far each stream is applied in the store, and who waits for it to be so far.

import type { Position } from "../types.ts";

interface Waiting {
  readonly stream: string;
  readonly sequence: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Reached {
  #positions = new Map<string, Position>();
  #waiting: Waiting[] = [];

  of(stream: string): Position | undefined {
    return this.#positions.get(stream);
  }

  /** All positions, as the store has them. */
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

  async until(stream: string, sequence: number): Promise<void> {
    if (this.#isReached(stream, sequence)) return;
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ stream, sequence, resolve, reject });
    });
  }

  close(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting)
      reject(new Error("wait for a position: the writer has ended"));
  }

  #isReached(stream: string, sequence: number): boolean {
    return (this.#positions.get(stream)?.sequence ?? 0) >= sequence;
  }
}
