// Answers that do not depend on what the store does: texts, scripts, and the "thank you" for what
// is not kept. Writes one, a long one as the client reads it, so that who asks for a script and
// does not read it holds no copy of it here. Counts nothing.

import { atOnceBytesMax, writePiecewise } from "../piecewise.ts";
import { endHead, writeCorsHeaders } from "../reply.ts";
import type { HttpResponse } from "../uws.ts";

export interface FixedAnswer {
  readonly status: 200 | 204 | 304;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
}

export interface FixedAnswerOptions {
  /** The request's Origin header, "" for none: mirrored. */
  readonly origin: string;
  /** Close the connection once this is sent. */
  readonly close: boolean;
  /** The request was a HEAD: headers only. */
  readonly headOnly: boolean;
  /**
   * Called once it is handed over whole; with `mustClose` nothing but the caller ends the
   * connection. Not called when the client goes before that.
   */
  readonly sent: (mustClose: boolean) => void;
}

const statusLines = { 200: "200 OK", 204: "204 No Content", 304: "304 Not Modified" } as const;

/**
 * Of a long one answers what stops the writing, for when the client is gone; the connection ends
 * with it.
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
  // What is kept by a cache without the headers would be no answer to a page elsewhere.
  else response.writeHeader("Vary", "Origin");
}
