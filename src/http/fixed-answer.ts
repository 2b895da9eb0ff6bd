// Answers that do not depend on what the store does: texts, scripts, and the "thank you" for what is not kept. Writes one, a long one as the
// client reads it, so that who asks for a script and does not read it holds no copy of it here. Counts nothing.

import { writeCorsHeaders } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";

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
  /** Called once it is handed over whole; with `mustClose` nothing but the caller ends the connection. Not called when the client goes before that. */
  readonly sent: (mustClose: boolean) => void;
}

const statusLines = { 200: "200 OK", 204: "204 No Content", 304: "304 Not Modified" } as const;

/** A longer one goes out as the socket takes it, and the connection ends with it. */
const AT_ONCE_BYTES_MAX = 16_384;

export function writeFixed(response: HttpResponse, answer: FixedAnswer, options: FixedAnswerOptions): void {
  const { body } = answer;
  if (typeof body !== "string" && body.length > AT_ONCE_BYTES_MAX && !options.headOnly) {
    writeLong(response, { ...answer, body }, options);
    return;
  }
  response.cork(() => {
    writeHead(response, answer, options.origin);
    if (answer.status === 200 && !options.headOnly) response.end(body, options.close);
    // Only an end with a body can close the connection, and says a length of its own: that of no body.
    else if (options.close) response.end("", true);
    else if (answer.status !== 200) response.endWithoutBody();
    else response.writeHeader("Content-Length", String(Buffer.byteLength(body))).endWithoutBody();
  });
  options.sent(false);
}

function writeHead(response: HttpResponse, { status, headers }: FixedAnswer, origin: string): void {
  response.writeStatus(statusLines[status]);
  for (const [name, value] of headers) response.writeHeader(name, value);
  if (origin !== "") writeCorsHeaders(response, origin);
  // What is kept by a cache without the headers would be no answer to a page elsewhere.
  else response.writeHeader("Vary", "Origin");
}

/**
 * uWS would keep a copy of what the socket does not take at once, or, where it is told not to, cannot close the connection. So it is told of one
 * byte more to come than the client is: the answer never ends, and a request behind it ends the connection, as does the caller.
 */
function writeLong(
  response: HttpResponse,
  answer: FixedAnswer & { readonly body: Uint8Array },
  { origin, sent }: FixedAnswerOptions,
): void {
  const { body } = answer;
  const take = (bytes: Uint8Array): boolean => {
    let isTaken = false;
    response.cork(() => {
      [isTaken] = response.tryEnd(bytes, body.length + 1);
    });
    return isTaken;
  };
  const goOn = (offset: number): boolean => {
    // Once without a byte: what was taken last may still wait for the socket.
    if (!take(body.subarray(offset)) || !take(body.subarray(body.length))) return false;
    sent(true);
    return true;
  };
  response.onWritable(goOn);
  response.cork(() => {
    writeHead(response, answer, origin);
    // The length that is told is the one that is named first.
    response.writeHeader("Connection", "close").tryEnd(body.subarray(0, 1), body.length);
  });
  goOn(1);
}
