// How a frame ends, or a part of it: its bytes leave the admission budget, its memory goes back to
// where it came from, and each waiter hears once. When that is so is the publisher's to say.

import type { ErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Admission, FrameOutcome } from "../base/types.ts";
import { type Expiry, shareWords, takeExpired } from "./expiry.ts";
import type { Frame } from "./frame.ts";
import type { FrameMemory } from "./frame-memory.ts";

export interface SettlementOptions {
  readonly admission: Admission;
  readonly memory: FrameMemory;
  readonly log: Pick<Log, "error">;
}

/** Who hears, and of which parts of a frame. */
type Told = Pick<Frame, "waiters" | "shares">;

export class Settlement {
  readonly #admission: Admission;
  readonly #memory: FrameMemory;
  readonly #log: Pick<Log, "error">;
  #isFailureLogged = false;

  constructor({ admission, memory, log }: SettlementOptions) {
    this.#admission = admission;
    this.#memory = memory;
    this.#log = log;
  }

  /**
   * The client sends from the frame's memory. An acknowledgement says that all of it has left; a
   * frame that was retried, or never answered, may still be on its way, so its memory is not
   * used again.
   */
  release(frame: Frame, isAcknowledged: boolean): void {
    this.#admission.release(frame.joinedBytes);
    if (frame.sends === 0 || (frame.sends === 1 && isAcknowledged)) this.discard(frame);
    else frame.letGo();
  }

  /** The client does not hold its memory: it was never sent, or once and is acknowledged. */
  discard(frame: Frame): void {
    this.#memory.give(frame.memory);
    frame.letGo();
  }

  tell({ waiters, shares }: Told, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    let at = 0;
    for (const waiter of waiters) {
      try {
        waiter.frameSettled(outcome, code, shares[at + 1]!, shares[at + 2]!);
      } catch (error) {
        if (!this.#isFailureLogged)
          this.#log.error({ err: error }, "a waiter threw when its frame settled");
        this.#isFailureLogged = true;
      }
      at += shareWords;
    }
  }

  /** Some of the frame's waiters have no time left; it goes on for the others. */
  expire(frame: Frame, monotonicMs: number, expiry: Expiry): void {
    const gone = takeExpired(frame, monotonicMs, expiry);
    this.#admission.release(gone.bytesCut);
    this.tell(gone, expiry.outcome, expiry.code);
  }
}
