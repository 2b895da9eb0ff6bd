// Judges by the head where a request ends, and whether a proxy before us could see it end
// elsewhere: the bytes behind it would then be a request to one of us and a body to the other. uWS
// reads framing more loosely than RFC 9112 asks: it takes the first of several lengths, any
// transfer coding as chunked, an empty length as none, and ignores header lines behind one without
// a name. The caller answers.

import type { Problem } from "../../platform/base/errors.ts";
import type { HttpRequest } from "./uws.ts";

/**
 * Everybody sees a `sure` request end at the same place. A `doubtful` one may be answered, but the
 * connection must end with the answer.
 */
type Framing = "sure" | "doubtful" | Problem;

/**
 * Judges a head. `bytesDeclared` is the first Content-Length, -1 without one. With `everyLine` all
 * header lines are read, even where that length is above 0 and would do alone. That takes longer,
 * so it is asked for only where a proxy may have read the head as well. Before this, uWS has
 * refused a first length that is not digits, and a length beside a transfer coding that is not
 * empty.
 */
export function framingOf(
  request: HttpRequest,
  bytesDeclared: number,
  everyLine: boolean,
): Framing {
  // A length of 0, or none, does not settle where the request ends: another length may be hidden,
  // by somebody who sends bytes behind the head.
  const hasBody = bytesDeclared > 0;
  if (hasBody && !everyLine) return "sure";
  const lines = new FramingLines();
  request.forEach(lines.take);
  const fault = lines.fault();
  if (fault !== undefined) return { code: "invalid_framing", detail: fault };
  // Without a body length the end stays in doubt. uWS reads chunk sizes, their ends and extensions
  // loosely, and ignores a length behind a header line without a name.
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

  /**
   * Returns the fault for which RFC 9112 (3.2, 6.1, 6.3) has a server refuse the request, if any.
   */
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
