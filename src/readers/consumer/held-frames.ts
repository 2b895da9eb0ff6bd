// The frames of one stream that were received and are not acknowledged, delivered or not.
// Acknowledged frames are remembered until the server reports that it knows.

import type { JsMsg } from "@nats-io/jetstream";
import { leastOf } from "../../platform/base/extremes.ts";

export interface HeldFrame {
  /** Unique among the frames of this process. */
  readonly id: number;
  readonly sequence: number;
  /** How many times the stream had been truncated when the frame was received. */
  readonly generation: number;
  /** The message as the server sent it last. */
  message: JsMsg;
  /**
   * When the frame was delivered, or last reported as being worked on. Undefined: it waits for
   * delivery, or the program has acknowledged it.
   */
  outSinceMs: number | undefined;
  deliveries: number;
  /**
   * The stream no longer has this message under its sequence, so it cannot be acknowledged there.
   */
  isOrphan: boolean;
  /** The frame is delivered with the events that other frames have delivered. */
  isWhole: boolean;
}

let lastId = 0;

/** Frames received before a truncation or a new stream come first. */
export function byPosition(a: HeldFrame, b: HeldFrame): number {
  return a.generation - b.generation || a.sequence - b.sequence;
}

export class HeldFrames {
  readonly #held = new Map<number, HeldFrame>();
  readonly #acked = new Set<number>();
  /**
   * Unacknowledged frames that the stream no longer has. They are delivered again after a nak, and
   * the server does not know them.
   */
  readonly #orphans = new Set<HeldFrame>();
  /** While messages up to this sequence are missing, no later one is delivered. */
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

  /** All frames, orphans included, in the order in which they were stored. */
  get allInOrder(): HeldFrame[] {
    return [...this.#orphans, ...this.all].sort(byPosition);
  }

  get isComplete(): boolean {
    return this.#missing <= 0;
  }

  /** Number of frames up to that sequence. */
  upTo(sequence: number): number {
    return this.all.filter((held) => held.sequence <= sequence).length;
  }

  /** The lowest unacknowledged sequence; undefined: all received messages are acknowledged. */
  get lowest(): number | undefined {
    return this.size === 0 ? undefined : leastOf(this.#held.keys());
  }

  get(sequence: number): HeldFrame | undefined {
    return this.#held.get(sequence);
  }

  isAcked(sequence: number): boolean {
    return this.#acked.has(sequence);
  }

  /** The server has sent `count` messages up to that sequence that are not held here. */
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

  /** Records an acknowledgement. False: there was one before, or the stream lost the frame. */
  ack(held: HeldFrame): boolean {
    this.#orphans.delete(held);
    if (this.#held.get(held.sequence) !== held) return false;
    this.#held.delete(held.sequence);
    this.#acked.add(held.sequence);
    this.bytes -= held.message.data.length;
    return true;
  }

  /** The stream's messages after that sequence differ from the received ones. */
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

  /** The server knows that everything up to that sequence is acknowledged. */
  forgetAcked(upTo: number): void {
    for (const sequence of this.#acked) if (sequence <= upTo) this.#acked.delete(sequence);
  }
}
