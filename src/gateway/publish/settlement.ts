// Ends a frame or a part of it. Its bytes are released from the budget, its memory returns to the
// pool, and each waiter is notified once.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { Admission } from "../intake/admission.ts";
import { type Expired, type Expiry, joinWords, takeExpired } from "./expiry.ts";
import { Fifo } from "./fifo.ts";
import type { Frame } from "./frame.ts";
import type { FrameMemory } from "./frame-memory.ts";
import type { FrameOutcome } from "./port.ts";

interface SettlementOptions {
  readonly admission: Admission;
  readonly memory: FrameMemory;
  readonly log: Pick<Log, "error">;
  readonly allNotified: () => void;
}

/** The number is limited because notifying 6,000 waiters took 233 ms. */
const notifiedPerTurn = 256;

type Notifiable = Pick<Frame, "waiters" | "joins" | "messageBytesPerByte">;

interface Pending {
  readonly frame: Notifiable;
  readonly outcome: FrameOutcome;
  readonly code: ErrorCode | undefined;
  next: number;
}

export class Settlement {
  readonly #admission: Admission;
  readonly #memory: FrameMemory;
  readonly #log: Pick<Log, "error">;
  readonly #allNotified: () => void;
  readonly #budget = new TurnBudget(notifiedPerTurn);
  readonly #pending = new Fifo<Pending>();
  readonly #continueNow = (): void => this.#continue();
  #isFailureLogged = false;

  constructor({ admission, memory, log, allNotified }: SettlementOptions) {
    this.#admission = admission;
    this.#memory = memory;
    this.#log = log;
    this.#allNotified = allNotified;
  }

  get isNotifying(): boolean {
    return this.#pending.length > 0;
  }

  /**
   * Releases the bytes and the memory of a frame. The memory is reused only if the frame was never
   * sent, or was sent once and acknowledged. Otherwise, the NATS client may still read it.
   */
  release(frame: Frame, isAcknowledged: boolean): void {
    this.#admission.release(frame.joinedBytes + frame.overheadBytes);
    if (frame.sends === 0 || (frame.sends === 1 && isAcknowledged)) this.discard(frame);
    else frame.dropMemory();
  }

  /** Must be called only if the frame was never sent, or was sent once and acknowledged. */
  discard(frame: Frame): void {
    this.#memory.give(frame.memory);
    frame.dropMemory();
  }

  /**
   * Notifies the waiters of a frame. Many waiters are notified in several event loop iterations.
   */
  notify(frame: Notifiable, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    const pending = { frame, outcome, code, next: 0 };
    if (this.isNotifying || !this.#notifySome(pending)) this.#pending.push(pending);
    if (this.#pending.length === 1) setImmediate(this.#continueNow);
  }

  #continue(): void {
    const pending = this.#pending;
    for (let first = pending.first; first !== undefined; first = pending.first) {
      if (!this.#notifySome(first)) {
        setImmediate(this.#continueNow);
        return;
      }
      pending.shift();
    }
    this.#allNotified();
  }

  #notifySome(pending: Pending): boolean {
    const { frame, outcome, code } = pending;
    const { waiters, joins, messageBytesPerByte } = frame;
    while (pending.next < waiters.length) {
      if (this.#budget.isSpent) return false;
      this.#budget.spend(1);
      const next = pending.next++;
      const at = next * joinWords;
      try {
        const bytes = joins[at + 2]!;
        const messageBytes = Math.round(bytes * messageBytesPerByte);
        waiters[next]!.frameSettled(outcome, code, joins[at + 1]!, bytes, messageBytes);
      } catch (error) {
        if (!this.#isFailureLogged)
          this.#log.error(
            { err: error },
            "bug: the callback for the outcome of a frame threw an error",
          );
        this.#isFailureLogged = true;
      }
    }
    return true;
  }

  expire(frame: Frame, monotonicMs: number, expiry: Expiry): Expired {
    const { messageBytesPerByte } = frame;
    const gone = takeExpired(frame, monotonicMs, expiry);
    this.#admission.release(gone.bytesCut);
    this.notify({ ...gone, messageBytesPerByte }, expiry.outcome, expiry.code);
    return gone;
  }
}
