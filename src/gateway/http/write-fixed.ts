import type { LongAnswers } from "./long-answers.ts";
import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax, writePiecewise } from "./piecewise.ts";
import { endHead, statusLineOf, writeCorsHeaders } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";

interface FixedAnswerOptions {
  readonly origin: string;
  readonly close: boolean;
  readonly headOnly: boolean;
  readonly long: LongAnswers;
  readonly sent: (mustClose: boolean) => void;
}

export type Writing = Pick<FixedAnswerOptions, "close" | "sent" | "long">;

/**
 * Writes an answer that does not depend on the store. A long answer is sent as its client reads it,
 * and ends the connection; the returned function must be called when the client disconnects.
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
  // Otherwise a cache could give this answer, without CORS headers, to a page of another origin.
  else response.writeHeader("Vary", "Origin");
}
