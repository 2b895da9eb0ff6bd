// The frames of one stream that are in hand: received and not acknowledged, delivered or not. Those
// that were acknowledged are remembered until the server is known to have it. Knows nothing of
// NATS.

import type { JsMsg } from "@nats-io/jetstream";
import { leastOf } from "../../platform/base/extremes.ts";

export interface HeldFrame {
  /** Tells it from every other frame of this process. */
  readonly id: number;
  readonly sequence: number;
  /** How often the stream had been cut back when it was received. */
  readonly generation: number;
  /** As the server sent it last. */
  message: JsMsg;
  /**
   * When it was delivered, or last said to be worked on; undefined: it waits to be, or the program
   * has acknowledged it.
   */
  outSinceMs: number | undefined;
  deliveries: number;
  /** The stream no longer has it under its sequence, so it cannot be acknowledged there. */
  isOrphan: boolean;
  /** It is delivered with the events that other frames have delivered. */
  isWhole: boolean;
}

let lastId = 0;

/** What was received before the stream was cut back, or made anew, comes first. */
export function byPlace(a: HeldFrame, b: HeldFrame): number {
  return a.generation - b.generation || a.sequence - b.sequence;
}

export class HeldFrames {
  readonly #held = new Map<number, HeldFrame>();
  readonly #acked = new Set<number>();
  /** Not acknowledged, so they come again where they are handed back; but the server knows none. */
  readonly #orphans = new Set<HeldFrame>();
  /** The gate: while messages up to here are missing, none behind them is delivered. */
  #missing = 0;
  #missingUpTo = 0;
  #generation = 0;
  bytes = 0;

  get size(): number {
    return this.#held.size;
  }

  get all(): HeldFrame[] {
    return [...this.#held.values()];
  }

  /** With those that the stream no longer has, and in the order in which they were stored. */
  get allInOrder(): HeldFrame[] {
    return [...this.#orphans, ...this.all].sort(byPlace);
  }

  get isComplete(): boolean {
    return this.#missing <= 0;
  }

  /** How many there are up to that sequence. */
  upTo(sequence: number): number {
    return this.all.filter((held) => held.sequence <= sequence).length;
  }

  /** The lowest sequence that is not acknowledged; undefined: all that were received are. */
  get lowest(): number | undefined {
    return this.size === 0 ? undefined : leastOf(this.#held.keys());
  }

  get(sequence: number): HeldFrame | undefined {
    return this.#held.get(sequence);
  }

  isAcked(sequence: number): boolean {
    return this.#acked.has(sequence);
  }

  /** The server has sent so many messages up to that sequence that are not in hand. */
  expect(count: number, upTo: number): void {
    this.#missing = count;
    this.#missingUpTo = upTo;
  }

  add(message: JsMsg): HeldFrame {
    const { seq: sequence } = message;
    const fresh = { outSinceMs: undefined, deliveries: 0, isOrphan: false, isWhole: false };
    const generation = this.#generation;
    const held: HeldFrame = { id: ++lastId, sequence, generation, message, ...fresh };
    this.#held.set(sequence, held);
    this.bytes += message.data.length;
    if (sequence <= this.#missingUpTo) this.#missing--;
    return held;
  }

  /** False: it was acknowledged before, or the stream no longer has it. */
  ack(held: HeldFrame): boolean {
    this.#orphans.delete(held);
    if (this.#held.get(held.sequence) !== held) return false;
    this.#held.delete(held.sequence);
    this.#acked.add(held.sequence);
    this.bytes -= held.message.data.length;
    return true;
  }

  /** What the stream has behind that sequence is not what was received. */
  cutBack(sequence: number): void {
    this.expect(0, 0);
    this.#generation++;
    for (const held of this.all) {
      if (held.sequence <= sequence) continue;
      held.isOrphan = true;
      this.#orphans.add(held);
      this.#held.delete(held.sequence);
      this.bytes -= held.message.data.length;
    }
    for (const one of this.#acked) if (one > sequence) this.#acked.delete(one);
  }

  /** The server knows that everything up to there is acknowledged. */
  forgetAcked(upTo: number): void {
    for (const sequence of this.#acked) if (sequence <= upTo) this.#acked.delete(sequence);
  }
}
