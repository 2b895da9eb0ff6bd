// Judges where a request ends, and whether a proxy before us could see it end elsewhere: what
// follows would then be a request to one of us and a body to the other. uWS reads framing more
// loosely than RFC 9112 asks: it takes the first of several lengths, any transfer coding as
// chunked, an empty length as none, and ignores header lines behind one without a name. Reads the
// head only; the caller answers.

import type { Problem } from "../base/errors.ts";
import type { HttpRequest } from "./uws.ts";

/**
 * A `sure` request ends where anybody sees it end. A `doubtful` one may be answered, but the
 * connection must end with it.
 */
export type Framing = "sure" | "doubtful" | Problem;

/**
 * Judges a head. `bytesDeclared` is the first Content-Length, -1 without one. With `everyLine`,
 * every header line is read, also where that length says all there should be; that costs more than
 * reading the few that count, so it is for heads that others read as well. uWS has refused by now
 * what is not digits in the first length, and a length beside a transfer coding that is not empty.
 */
export function framingOf(
  request: HttpRequest,
  bytesDeclared: number,
  everyLine: boolean,
): Framing {
  // A body of none leaves it open whether a length was hidden, which only who sent bytes behind the
  // head would do.
  const hasBody = bytesDeclared > 0;
  if (hasBody && !everyLine) return "sure";
  const lines = new FramingLines();
  request.forEach(lines.take);
  const fault = lines.fault();
  if (fault !== undefined) return { code: "invalid_framing", detail: fault };
  // uWS reads chunk sizes, their ends and extensions loosely; and where there is no length, one may
  // stand behind a line without a name.
  return hasBody ? "sure" : "doubtful";
}

class FramingLines {
  #lengths = 0;
  #length = "";
  #lengthsDiffer = false;
  #codings = 0;
  #coding = "";
  #hosts = 0;

  readonly take = (name: string, value: string): void => {
    if (name === "content-length") {
      if (this.#lengths++ > 0 && value !== this.#length) this.#lengthsDiffer = true;
      this.#length = value;
    } else if (name === "transfer-encoding") {
      this.#codings++;
      this.#coding = value;
    } else if (name === "host") {
      this.#hosts++;
    }
  };

  /** Says what RFC 9112 (3.2, 6.1, 6.3) has a server refuse. */
  fault(): string | undefined {
    if (this.#codings > 0 && this.#lengths > 0)
      return "Both Content-Length and Transfer-Encoding were sent";
    if (this.#codings > 1) return "Transfer-Encoding was sent more than once";
    if (this.#codings > 0 && this.#coding.trim().toLowerCase() !== "chunked") {
      return "Transfer-Encoding must be chunked";
    }
    if (this.#lengths > 1) {
      return this.#lengthsDiffer
        ? "Different Content-Lengths were sent"
        : "Content-Length was sent more than once";
    }
    if (this.#lengths > 0 && !/^\d+$/.test(this.#length)) return "Content-Length must be a number";
    return this.#hosts > 1 ? "Host was sent more than once" : undefined;
  }
}
