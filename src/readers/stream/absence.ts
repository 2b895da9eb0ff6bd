// Decides what to do if a stream does not exist. If it was read to its end, it was removed on
// purpose, and the reader waits for it. Otherwise, an operator must decide.

import type { Log } from "../../platform/base/log.ts";
import type { StreamName } from "./stored-stream.ts";

interface Waiting {
  readonly log: Pick<Log, "warn">;
  readonly name: StreamName;
}

export class GoneError extends Error {}

/** Recreating a stream takes less time than two misses. */
const missesMax = 2;

export class Absence {
  #misses = 0;
  #isBack: PromiseWithResolvers<void> | undefined;

  get isWaiting(): boolean {
    return this.#isBack !== undefined;
  }

  /**
   * Returns the error after a request found no stream: a GoneError if the reader should wait.
   * `lastSequence` is below 0 if unknown.
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

  async wait({ log, name: { stream } }: Waiting): Promise<void> {
    log.warn({ stream }, "stream removed: all of its messages were read");
    this.#isBack = Promise.withResolvers();
    await this.#isBack.promise;
    this.#isBack = undefined;
  }

  end(): void {
    this.#misses = 0;
    this.#isBack?.resolve();
  }
}
