// Writes an answer that does not depend on what the store does: a text, a script, or the "thank
// you" for what is not kept. A long one goes out as the client reads it, so that a client that asks
// for a script and does not read it holds no copy of it here. Counts nothing.

import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax, writePiecewise } from "./piecewise.ts";
import { endHead, statusLines, writeCorsHeaders } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";

export interface FixedAnswerOptions {
  /** The request's Origin header, "" for none: mirrored. */
  readonly origin: string;
  /** Close the connection once this is sent. */
  readonly close: boolean;
  /** The request was a HEAD: headers only. */
  readonly headOnly: boolean;
  /**
   * Called once the answer is handed over whole; with `mustClose` nothing but the caller ends the
   * connection. It is not called when the client goes before that.
   */
  readonly sent: (mustClose: boolean) => void;
}

/**
 * For a long answer returns the function that stops the writing, to be called when the client is
 * gone; the connection ends with such an answer.
 */
export function writeFixed(
  response: HttpResponse,
  answer: FixedAnswer,
  options: FixedAnswerOptions,
): (() => void) | undefined {
  const { body } = answer;
  const { origin, sent } = options;
  if (typeof body !== "string" && body.length > atOnceBytesMax && !options.headOnly) {
    return writePiecewise(response, body, {
      writeHead: () => writeHead(response, answer, origin),
      close: true,
      sent,
    });
  }
  const { close } = options;
  const isHead = answer.status !== 200 || options.headOnly;
  response.cork(() => {
    writeHead(response, answer, origin);
    if (isHead && answer.status === 200)
      response.writeHeader("Content-Length", String(Buffer.byteLength(body)));
    if (!isHead) response.end(body, close);
    else if (close) endHead(response);
    else response.endWithoutBody();
  });
  sent(isHead && close);
  return undefined;
}

function writeHead(response: HttpResponse, { status, headers }: FixedAnswer, origin: string): void {
  response.writeStatus(statusLines[status]);
  for (const [name, value] of headers) response.writeHeader(name, value);
  if (origin !== "") writeCorsHeaders(response, origin);
  // A cached answer without these headers would be no answer to a page of another origin.
  else response.writeHeader("Vary", "Origin");
}
