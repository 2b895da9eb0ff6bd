// Tracks long answers until their clients have read them. Until then their bytes count as bytes in
// flight. The bytes of a body with several readers count once. A client that reads too slowly is
// disconnected, so that it cannot occupy the budget; its events are stored anyway.

import type { Admission } from "../intake/admission.ts";
import { type PiecewiseOptions, writePiecewise } from "./piecewise.ts";
import type { HttpResponse } from "./uws.ts";

/**
 * Share of the budget of bytes in flight above which the slowest reader of all long answers is
 * disconnected, then the next.
 */
const shareOfBudget = 1 / 4;
/**
 * Milliseconds after which a client can be disconnected as the slowest one. After `slowAfterMs` it
 * can also be disconnected as too slow: it must then have read `bytesPerSecondMin` for each further
 * second.
 */
const slowestAfterMs = 1_000;
const slowAfterMs = 8_000;
const bytesPerSecondMin = 20_480;
const checkMs = 1_000;

interface LongAnswersOptions {
  readonly admission: Admission;
  readonly monotonicMs: () => number;
}

interface LongAnswerOptions extends PiecewiseOptions {
  /**
   * Whether other requests may have the same body, in the same memory. A slow reader of a shared
   * body is tolerated.
   */
  readonly isShared?: boolean;
}

interface LongAnswer {
  readonly body: Uint8Array;
  readonly isShared: boolean;
  readonly sinceMs: number;
  readonly response: HttpResponse;
}

export class LongAnswers {
  readonly #options: LongAnswersOptions;
  readonly #answers = new Set<LongAnswer>();
  /** Number of readers of each body. The key of a body that is not shared is its answer. */
  readonly #readers = new Map<Uint8Array | LongAnswer, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LongAnswersOptions) {
    this.#options = options;
  }

  /**
   * Returns whether the long answers together exceed their share, so that a client will be
   * disconnected.
   */
  get holdTooMuch(): boolean {
    return this.#bytes > this.#options.admission.bytesMax * shareOfBudget;
  }

  /** Writes an answer like writePiecewise, and returns the function that stops the writing. */
  write(
    response: HttpResponse,
    body: Uint8Array,
    { writeHead, close, sent, isShared = false }: LongAnswerOptions,
  ): () => void {
    const answer = { body, isShared, sinceMs: this.#options.monotonicMs(), response };
    this.#add(answer);
    const stop = writePiecewise(response, body, {
      writeHead,
      close,
      sent: (mustClose) => {
        this.#delete(answer);
        sent(mustClose);
      },
    });
    return () => {
      stop();
      this.#delete(answer);
    };
  }

  #add(answer: LongAnswer): void {
    const { body } = answer;
    this.#answers.add(answer);
    const key = answer.isShared ? body : answer;
    const readers = this.#readers.get(key) ?? 0;
    this.#readers.set(key, readers + 1);
    if (readers === 0) {
      this.#bytes += body.length;
      // The bytes of an answer may exceed the limit, because the events that it reports on are
      // already stored.
      this.#options.admission.take(body.length);
    }
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref();
  }

  #delete(answer: LongAnswer): void {
    if (!this.#answers.delete(answer)) return;
    const { body } = answer;
    const key = answer.isShared ? body : answer;
    const readers = this.#readers.get(key)! - 1;
    if (readers > 0) {
      this.#readers.set(key, readers);
      return;
    }
    this.#readers.delete(key);
    this.#bytes -= body.length;
    this.#options.admission.release(body.length);
    if (this.#answers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    const now = this.#options.monotonicMs();
    const readers = [...this.#answers].map((answer) => {
      const ageMs = now - answer.sinceMs;
      const bytesRead = answer.response.getWriteOffset();
      return { answer, ageMs, bytesRead, bytesPerMs: bytesRead / Math.max(ageMs, 1) };
    });
    readers.sort((one, other) => one.bytesPerMs - other.bytesPerMs);
    for (const { answer, ageMs, bytesRead } of readers) {
      const isTooSlow =
        !answer.isShared && bytesRead < (bytesPerSecondMin * (ageMs - slowAfterMs)) / 1_000;
      const isTooMuch = this.holdTooMuch && ageMs > slowestAfterMs;
      // A single body is never disconnected for its size, even if it is longer than the share.
      if (isTooSlow || (isTooMuch && this.#readers.size > 1)) answer.response.close();
    }
  }
}
