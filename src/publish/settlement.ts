// Ends a frame, or a part of it: its bytes leave the admission budget, its memory goes back to
// where it came from, and each waiter hears once. The publisher decides when.

import type { ErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Admission, FrameOutcome } from "../base/types.ts";
import { type Expiry, shareWords, takeExpired } from "./expiry.ts";
import type { Frame } from "./frame.ts";
import type { FrameMemory } from "./frame-memory.ts";

interface SettlementOptions {
  readonly admission: Admission;
  readonly memory: FrameMemory;
  readonly log: Pick<Log, "error">;
}

/** The waiters that are told, and the share of the frame that each of them has. */
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
   * Ends a frame's hold on budget and memory. The client sends from the frame's memory. An
   * acknowledgement of the only send says that all of the memory has left. A frame that was
   * retried, or never answered, may still be on its way, so its memory is not used again.
   */
  release(frame: Frame, isAcknowledged: boolean): void {
    this.#admission.release(frame.joinedBytes);
    if (frame.sends === 0 || (frame.sends === 1 && isAcknowledged)) this.discard(frame);
    else frame.letGo();
  }

  /**
   * Gives the frame's memory back. Only for a frame whose memory the client does not hold: it was
   * never sent, or was sent once and is acknowledged.
   */
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

  /**
   * Takes out the waiters that have no time left, and tells them. The frame goes on for the others.
   */
  expire(frame: Frame, monotonicMs: number, expiry: Expiry): void {
    const gone = takeExpired(frame, monotonicMs, expiry);
    this.#admission.release(gone.bytesCut);
    this.tell(gone, expiry.outcome, expiry.code);
  }
}
