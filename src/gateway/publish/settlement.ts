// Ends a frame, or a part of it: its bytes leave the admission budget, its memory goes back to
// where it came from, and each waiter hears once. The publisher decides when.

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
  /** Called when the last of waiters that were told later has been told. */
  readonly allTold: () => void;
}

/**
 * So many waiters are told before other work gets its turn. To answer 6,000 that had waited out a
 * stop of the store was a turn of 233 ms.
 */
const toldPerTurn = 256;

/** The waiters that are told, and what each of them joined the frame with. */
type Told = Pick<Frame, "waiters" | "joins" | "messageBytesPerByte">;

/** Waiters of a frame that are told in a later turn, from the one at `place` on. */
interface Untold {
  readonly told: Told;
  readonly outcome: FrameOutcome;
  readonly code: ErrorCode | undefined;
  place: number;
}

export class Settlement {
  readonly #admission: Admission;
  readonly #memory: FrameMemory;
  readonly #log: Pick<Log, "error">;
  readonly #allTold: () => void;
  readonly #budget = new TurnBudget(toldPerTurn);
  readonly #untold = new Fifo<Untold>();
  readonly #goOnNow = (): void => this.#goOn();
  #isFailureLogged = false;

  constructor({ admission, memory, log, allTold }: SettlementOptions) {
    this.#admission = admission;
    this.#memory = memory;
    this.#log = log;
    this.#allTold = allTold;
  }

  /** Whether there are waiters that will be told in a later turn. */
  get isTelling(): boolean {
    return this.#untold.length > 0;
  }

  /**
   * Ends a frame's hold on budget and memory. The client sends from the frame's memory. An
   * acknowledgement of the only send says that all of the memory has left. A frame that was
   * retried, or never answered, may still be on its way, so its memory is not used again.
   */
  release(frame: Frame, isAcknowledged: boolean): void {
    this.#admission.release(frame.joinedBytes + frame.overheadBytes);
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

  /** Tells each waiter, in this turn or, behind those that wait for it already, in a later one. */
  tell(told: Told, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    const untold = { told, outcome, code, place: 0 };
    if (this.isTelling || !this.#tellSome(untold)) this.#untold.push(untold);
    if (this.#untold.length === 1) setImmediate(this.#goOnNow);
  }

  #goOn(): void {
    const untold = this.#untold;
    for (let first = untold.first; first !== undefined; first = untold.first) {
      if (!this.#tellSome(first)) {
        setImmediate(this.#goOnNow);
        return;
      }
      untold.shift();
    }
    this.#allTold();
  }

  /** Tells as many as this turn has left. Returns whether none is left. */
  #tellSome(untold: Untold): boolean {
    const { told, outcome, code } = untold;
    const { waiters, joins, messageBytesPerByte } = told;
    while (untold.place < waiters.length) {
      if (this.#budget.isSpent) return false;
      this.#budget.spend(1);
      const place = untold.place++;
      const at = place * joinWords;
      try {
        const bytes = joins[at + 2]!;
        const messageBytes = Math.round(bytes * messageBytesPerByte);
        waiters[place]!.frameSettled(outcome, code, joins[at + 1]!, bytes, messageBytes);
      } catch (error) {
        if (!this.#isFailureLogged)
          this.#log.error({ err: error }, "a waiter threw when its frame settled");
        this.#isFailureLogged = true;
      }
    }
    return true;
  }

  /**
   * Takes out the waiters that have no time left, and tells them. The frame goes on for the others,
   * and if it was sent, until it is acknowledged. Returns the waiters, and where their lines are in
   * the frame.
   */
  expire(frame: Frame, monotonicMs: number, expiry: Expiry): Expired {
    const { messageBytesPerByte } = frame;
    const gone = takeExpired(frame, monotonicMs, expiry);
    this.#admission.release(gone.bytesCut);
    this.tell({ ...gone, messageBytesPerByte }, expiry.outcome, expiry.code);
    return gone;
  }
}
