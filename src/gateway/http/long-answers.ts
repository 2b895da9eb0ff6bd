// Follows long answers until their clients have read them. Until then their bytes count as bytes in
// flight; those of a body that several read, once. A client that reads too slowly is cut off, so
// that nobody holds others' room by not reading; its events are stored all the same.

import type { Admission } from "../intake/admission.ts";
import { type PiecewiseOptions, writePiecewise } from "./piecewise.ts";
import type { HttpResponse } from "./uws.ts";

/**
 * Where long answers together hold more than this share of the bytes that may be in flight, the
 * slowest reader is cut off, then the next.
 */
const shareOfBudget = 1 / 4;
/**
 * A client can be cut off as the slowest after `slowestAfterMs`, and as too slow after
 * `slowAfterMs`. For each second after the latter it must have read `bytesPerSecondMin`.
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
  /** Others may have the same body, in the same memory. One reader of it may take its time. */
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
  /** How many read each body; one that is not shared stands for itself. */
  readonly #readers = new Map<Uint8Array | LongAnswer, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LongAnswersOptions) {
    this.#options = options;
  }

  /** They hold more than they may together, and somebody will be cut off. */
  get holdTooMuch(): boolean {
    return this.#bytes > this.#options.admission.bytesMax * shareOfBudget;
  }

  /** Writes as writePiecewise does, and like it returns the function that stops the writing. */
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
      // These bytes may go beyond the limit: the events that the answer reports on are already
      // stored.
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
      // A single body is never too much, even where it alone is longer than all may be together.
      if (isTooSlow || (isTooMuch && this.#readers.size > 1)) answer.response.close();
    }
  }
}
