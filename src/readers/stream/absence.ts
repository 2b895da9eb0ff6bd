// Decides what a reader does if NATS reports that a stream does not exist. If the stream was read
// to its end, it was removed on purpose, and the reader waits for it. Otherwise, an operator must
// decide.

import type { Log } from "../../platform/base/log.ts";
import type { StreamName } from "./stored-stream.ts";

interface Waiting {
  readonly log: Pick<Log, "warn">;
  readonly name: StreamName;
}

/** The stream was read to its end and no longer exists. */
export class GoneError extends Error {}

/**
 * Number of consecutive misses after which the stream counts as removed. Recreating a stream takes
 * less time.
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
   * wait for the stream. `lastSequence` is the last known sequence of the stream; below 0 if
   * unknown. `readTo` is the sequence up to which the stream was read.
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

  /** Logs that the stream was removed, and waits until `end` is called. */
  async wait({ log, name: { stream } }: Waiting): Promise<void> {
    log.warn({ stream }, "stream removed: all of its messages were read");
    this.#isBack = Promise.withResolvers();
    await this.#isBack.promise;
    this.#isBack = undefined;
  }

  /** Ends the wait, because the stream exists or the reader is closed. */
  end(): void {
    this.#misses = 0;
    this.#isBack?.resolve();
  }
}
