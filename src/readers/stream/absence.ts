// Decides what to do if NATS reports that a stream does not exist. A stream that was read to its
// end was removed on purpose, and the reader waits for it. Otherwise an operator has to decide.

import type { Log } from "../../platform/base/log.ts";
import type { StreamName } from "./stored-stream.ts";

interface Waiting {
  readonly log: Pick<Log, "warn">;
  readonly name: StreamName;
}

/** The stream was read to its end and no longer exists. */
export class GoneError extends Error {}

/**
 * After this many consecutive misses the stream counts as removed; recreating it takes less time.
 */
const missesMax = 2;

export class Absence {
  #misses = 0;
  #isBack: PromiseWithResolvers<void> | undefined;

  /** Whether the reader waits for the stream. */
  get isWaiting(): boolean {
    return this.#isBack !== undefined;
  }

  /**
   * Returns the error to throw after a request found no stream: a GoneError if the reader should
   * wait for it. `lastSequence` is the last known sequence of the stream; below 0: unknown.
   */
  fault(lastSequence: number, readTo: number): Error {
    const unread = lastSequence - readTo;
    if (unread > 0)
      return new Error(
        `the stream does not exist, and ${unread} of its messages were not read: restore it, or restart this program to continue without them`,
      );
    const isGone = lastSequence >= 0 && ++this.#misses >= missesMax;
    return new (isGone ? GoneError : Error)("the stream does not exist");
  }

  /** Fulfilled by `end`. */
  async wait({ log, name: { stream } }: Waiting): Promise<void> {
    log.warn({ stream }, "stream removed: all of its messages were read");
    this.#isBack = Promise.withResolvers();
    await this.#isBack.promise;
    this.#isBack = undefined;
  }

  /** The stream exists, or the reader is closed. */
  end(): void {
    this.#misses = 0;
    this.#isBack?.resolve();
  }
}
