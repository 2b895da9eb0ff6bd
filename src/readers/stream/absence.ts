// What to make of a stream that NATS says is not there. One that was read to its end was removed on
// purpose, and is waited for; of another one somebody has to decide.

import type { Log } from "../../platform/base/log.ts";
import type { StreamName } from "./stored-stream.ts";

interface Waiting {
  readonly log: Pick<Log, "warn">;
  readonly name: StreamName;
}

/** The stream was read to its end, and is there no longer. */
export class GoneError extends Error {}

/** Asked so often in a row, the stream was removed; one that is made anew is there sooner. */
const askedInVainMax = 2;

export class Absence {
  #askedInVain = 0;
  #isBack: PromiseWithResolvers<void> | undefined;

  /** Whether it is being waited for. */
  get isWaiting(): boolean {
    return this.#isBack !== undefined;
  }

  /**
   * It was asked for in vain: what is to be thrown, which is a GoneError where it is to be waited
   * for. `lastSequence`: that it had; below 0: never told.
   */
  fault(lastSequence: number, readTo: number): Error {
    const unread = lastSequence - readTo;
    if (unread > 0)
      return new Error(
        `the stream is not there, and ${unread} of its messages were not read: put it back, or start this program again to go on without them`,
      );
    const isGone = lastSequence >= 0 && ++this.#askedInVain >= askedInVainMax;
    return new (isGone ? GoneError : Error)("the stream is not there");
  }

  /** Fulfilled by `end`. */
  async wait({ log, name: { stream } }: Waiting): Promise<void> {
    log.warn({ stream }, "a stream is there no longer; all of it was read");
    this.#isBack = Promise.withResolvers();
    await this.#isBack.promise;
    this.#isBack = undefined;
  }

  /** It is there, or nobody waits for it any more. */
  end(): void {
    this.#askedInVain = 0;
    this.#isBack?.resolve();
  }
}
