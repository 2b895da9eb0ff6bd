// Writes an answer that does not depend on the store: a text, a script, an upstream's answer, or
// the confirmation for discarded data. A long answer is sent as its client reads it, so that no
// copy of a script is held for a client that does not read it. Counts nothing.

import type { LongAnswers } from "./long-answers.ts";
import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax, writePiecewise } from "./piecewise.ts";
import { endHead, statusLineOf, writeCorsHeaders } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";

interface FixedAnswerOptions {
  /** The request's Origin header, "" for none. CORS headers mirror it. */
  readonly origin: string;
  /** Whether the connection closes after the answer. */
  readonly close: boolean;
  /** Whether the request was a HEAD: the answer has headers only. */
  readonly headOnly: boolean;
  /** Tracks answers that belong to one request alone. */
  readonly long: LongAnswers;
  /**
   * Reports that the whole answer is passed to the socket; not called if the client disconnects
   * before. If `mustClose` is true, the caller must close the connection.
   */
  readonly sent: (mustClose: boolean) => void;
}

/** The exchange's options for an answer that is about to be written. */
export type Writing = Pick<FixedAnswerOptions, "close" | "sent" | "long">;

/**
 * Writes the answer. For a long answer, returns a function that stops the writing, which must be
 * called when the client disconnects; the connection ends with such an answer. Otherwise returns
 * undefined.
 */
export function writeFixed(
  response: HttpResponse,
  answer: FixedAnswer,
  options: FixedAnswerOptions,
): (() => void) | undefined {
  const { body } = answer;
  const { origin, sent } = options;
  const hasNoBody = answer.status === 204 || answer.status === 304;
  if (typeof body !== "string" && body.length > atOnceBytesMax && !options.headOnly) {
    const piecewise = { writeHead: () => writeHead(response, answer, origin), close: true, sent };
    const { isHeldBy } = answer;
    return isHeldBy === undefined
      ? writePiecewise(response, body, piecewise)
      : options.long.write(response, body, { ...piecewise, isShared: isHeldBy === "its readers" });
  }
  const { close } = options;
  const isHead = hasNoBody || options.headOnly;
  response.cork(() => {
    writeHead(response, answer, origin);
    if (isHead && !hasNoBody)
      response.writeHeader("Content-Length", String(Buffer.byteLength(body)));
    if (!isHead) response.end(body, close);
    else if (close) endHead(response);
    else response.endWithoutBody();
  });
  sent(isHead && close);
  return undefined;
}

function writeHead(response: HttpResponse, { status, headers }: FixedAnswer, origin: string): void {
  response.writeStatus(statusLineOf(status));
  for (const [name, value] of headers) response.writeHeader(name, value);
  if (origin !== "") writeCorsHeaders(response, origin);
  // This answer has no CORS headers. Without Vary a cache could give it to a page of another
  // origin, which could not read it.
  else response.writeHeader("Vary", "Origin");
}
