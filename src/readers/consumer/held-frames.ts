// Holds the received frames of a stream. Also holds the acknowledged sequences until the server has
// confirmed them.

import type { JsMsg } from "@nats-io/jetstream";
import { leastOf } from "../../platform/base/extremes.ts";

export interface HeldFrame {
  readonly id: number;
  readonly sequence: number;
  /** Number of times that the stream was truncated or recreated before this frame was received. */
  readonly generation: number;
  message: JsMsg;
  /** Time in ms of the delivery or of the last call of `working`, if the frame is delivered. */
  outSinceMs: number | undefined;
  deliveries: number;
  /** If true, the stream no longer contains the message, so the message cannot be acknowledged. */
  isOrphan: boolean;
  isWhole: boolean;
}

let lastId = 0;

/**
 * Compares two frames by their order in the stream. Frames that were received before a truncation
 * or recreation of the stream come first.
 */
export function byPosition(a: HeldFrame, b: HeldFrame): number {
  return a.generation - b.generation || a.sequence - b.sequence;
}

export class HeldFrames {
  readonly #held = new Map<number, HeldFrame>();
  readonly #acked = new Set<number>();
  readonly #orphans = new Set<HeldFrame>();
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

  get allInOrder(): HeldFrame[] {
    return [...this.#orphans, ...this.all].sort(byPosition);
  }

  get isComplete(): boolean {
    return this.#missing <= 0;
  }

  upTo(sequence: number): number {
    return this.all.filter((held) => held.sequence <= sequence).length;
  }

  get lowest(): number | undefined {
    return this.size === 0 ? undefined : leastOf(this.#held.keys());
  }

  get(sequence: number): HeldFrame | undefined {
    return this.#held.get(sequence);
  }

  isAcked(sequence: number): boolean {
    return this.#acked.has(sequence);
  }

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

  ack(held: HeldFrame): boolean {
    this.#orphans.delete(held);
    if (this.#held.get(held.sequence) !== held) return false;
    this.#held.delete(held.sequence);
    this.#acked.add(held.sequence);
    this.bytes -= held.message.data.length;
    return true;
  }

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

  forgetAcked(upTo: number): void {
    for (const sequence of this.#acked) if (sequence <= upTo) this.#acked.delete(sequence);
  }
}
