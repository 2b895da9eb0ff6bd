// Writes long answers as fast as their clients read them, one piece per event loop iteration. Until
// an answer has been read, its bytes count as bytes in flight. If a client reads too slowly, it is
// disconnected.

import type { Admission } from "../intake/admission.ts";
import type { HttpResponse } from "./uws.ts";

/** If unread answers use more of the budget than this, the slowest clients are disconnected. */
const shareOfBudget = 1 / 4;
const slowestAfterMs = 1_000;
/** After this time, a client must have read at least `bytesPerSecondMin` on average. */
const slowAfterMs = 8_000;
const bytesPerSecondMin = 20_480;
const checkMs = 1_000;

interface LongAnswersOptions {
  readonly admission: Admission;
  readonly monotonicMs: () => number;
}

interface LongAnswerOptions extends PiecewiseOptions {
  /** This flag is true if other requests use the same body. Then slow clients stay connected. */
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
  readonly #readers = new Map<Uint8Array | LongAnswer, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LongAnswersOptions) {
    this.#options = options;
  }

  get holdTooMuch(): boolean {
    return this.#bytes > this.#options.admission.bytesMax * shareOfBudget;
  }

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
      if (isTooSlow || (isTooMuch && this.#readers.size > 1)) answer.response.close();
    }
  }
}

export const atOnceBytesMax = 16_384;
/** Passing this number of bytes to the socket takes about 20 µs. */
const pieceBytesMax = 65_536;

interface PiecewiseOptions {
  readonly writeHead: (response: HttpResponse) => void;
  readonly close: boolean;
  /** If `mustClose` is true, the caller must close the connection after the whole answer. */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * Writes a long answer in pieces. Returns a function that the caller must call if the client
 * disconnects. The body must stay valid until then, or until `sent` is called. uWS cannot close a
 * connection after `tryEnd`. So with `close`, the length passed to uWS is one byte too large, and
 * uWS closes the connection when another request arrives.
 */
export function writePiecewise(
  response: HttpResponse,
  body: Uint8Array,
  { writeHead, close, sent }: PiecewiseOptions,
): () => void {
  const declaredBytes = close ? body.length + 1 : body.length;
  let isStopped = false;
  response.onWritable((offset) => writeFrom(offset));
  let isWhole = false;
  response.cork(() => {
    writeHead(response);
    if (close) response.writeHeader("Connection", "close");
    // uWS sends the length of this first call to the client as the Content-Length.
    [, isWhole] = response.tryEnd(body.subarray(0, 1), body.length);
  });
  writeFrom(1);
  return () => {
    isStopped = true;
  };

  function writeFrom(offset: number): boolean {
    if (isStopped) return true;
    const piece = body.subarray(offset, offset + pieceBytesMax);
    let isTaken = false;
    response.cork(() => {
      [isTaken, isWhole] = response.tryEnd(piece, declaredBytes);
    });
    if (isWhole) return finish(false);
    if (!isTaken) return false;
    // A piece is complete only when the socket has accepted a further, empty piece.
    if (piece.length === 0) return finish(true);
    setImmediate(() => {
      if (!isStopped) writeFrom(response.getWriteOffset());
    });
    return true;
  }

  function finish(mustClose: boolean): boolean {
    isStopped = true;
    sent(mustClose);
    return true;
  }
}
