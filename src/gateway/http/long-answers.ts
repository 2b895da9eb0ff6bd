// Long answers, which are written as their clients read them, one piece per event loop iteration.
// So no copy waits for a socket, and other requests do not wait. Until an answer is read its bytes
// count as bytes in flight. A client that reads too slowly is disconnected.

import type { Admission } from "../intake/admission.ts";
import { type PiecewiseOptions, writePiecewise } from "./piecewise.ts";
import type { HttpResponse } from "./uws.ts";

/** Share of the budget above which the slowest readers are disconnected. */
const shareOfBudget = 1 / 4;
/**
 * A client may be the slowest from this age on. From `slowAfterMs` on it must have read
 * `bytesPerSecondMin` for each further second.
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
  /** Whether other requests may have the same body in memory. A slow reader of it is tolerated. */
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
  /** The number of readers by body or, if it is not shared, by answer. */
  readonly #readers = new Map<Uint8Array | LongAnswer, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LongAnswersOptions) {
    this.#options = options;
  }

  /** Whether the long answers exceed their share, so that a client will be disconnected. */
  get holdTooMuch(): boolean {
    return this.#bytes > this.#options.admission.bytesMax * shareOfBudget;
  }

  /** Writes an answer like writePiecewise. Returns a function that stops the writing. */
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
      // Beyond the limit as well: the events of the answer are already stored.
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
      // A single body is never disconnected for its size.
      if (isTooSlow || (isTooMuch && this.#readers.size > 1)) answer.response.close();
    }
  }
}
