// Follows long answers, each made for one client, until that client has read them. Until then their
// bytes count as bytes in flight. A client that reads too slowly is cut off, so that nobody holds
// others' room by not reading; its events are stored all the same.

import type { Admission } from "../base/types.ts";
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

interface LongAnswer {
  readonly bytes: number;
  readonly sinceMs: number;
  readonly response: HttpResponse;
}

export class LongAnswers {
  readonly #options: LongAnswersOptions;
  readonly #answers = new Set<LongAnswer>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LongAnswersOptions) {
    this.#options = options;
  }

  /** Writes as writePiecewise does, and like it returns the function that stops the writing. */
  write(
    response: HttpResponse,
    body: Uint8Array,
    { writeHead, close, sent }: PiecewiseOptions,
  ): () => void {
    const answer = { bytes: body.length, sinceMs: this.#options.monotonicMs(), response };
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
    this.#answers.add(answer);
    this.#bytes += answer.bytes;
    // These bytes may go beyond the limit: the events that the answer reports on are already
    // stored.
    this.#options.admission.take(answer.bytes);
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref();
  }

  #delete(answer: LongAnswer): void {
    if (!this.#answers.delete(answer)) return;
    this.#bytes -= answer.bytes;
    this.#options.admission.release(answer.bytes);
    if (this.#answers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    const { admission, monotonicMs } = this.#options;
    const now = monotonicMs();
    const readers = [...this.#answers].map((answer) => {
      const ageMs = now - answer.sinceMs;
      const bytesRead = answer.response.getWriteOffset();
      return { answer, ageMs, bytesRead, bytesPerMs: bytesRead / Math.max(ageMs, 1) };
    });
    readers.sort((one, other) => one.bytesPerMs - other.bytesPerMs);
    for (const { answer, ageMs, bytesRead } of readers) {
      const isTooSlow = bytesRead < (bytesPerSecondMin * (ageMs - slowAfterMs)) / 1_000;
      const isTooMuch = this.#bytes > admission.bytesMax * shareOfBudget && ageMs > slowestAfterMs;
      // A single answer is never too much, even where it alone is longer than all may be together.
      if (isTooSlow || (isTooMuch && this.#answers.size > 1)) answer.response.close();
    }
  }
}
