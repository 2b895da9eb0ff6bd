// Finds from the head where a request ends, and whether a proxy in front could see another end. If
// so, the bytes after the end would be a request for one parser and a body for the other. uWS
// parses framing more loosely than RFC 9112 requires: it uses the first of several lengths, treats
// any transfer coding as chunked and an empty length as absent, and ignores header lines after one
// without a name. The caller answers.

import type { Problem } from "../../platform/base/errors.ts";
import type { HttpRequest } from "./uws.ts";

/**
 * Certainty of a request's end. The end of a `certain` request is the same for all parsers. An
 * `uncertain` request may be answered, but the connection must end with the answer.
 */
type Framing = "certain" | "uncertain" | Problem;

/**
 * Checks the framing in a head. `bytesDeclared` is the first Content-Length, -1 if absent. If
 * `everyLine` is true, reads all header lines, even if `bytesDeclared` is above 0 and would be
 * sufficient. To read all lines takes longer, so `everyLine` is set only if a proxy may have read
 * the head as well. uWS has already refused a first length that is not digits, and a length
 * together with a transfer coding that is not empty.
 */
export function framingOf(
  request: HttpRequest,
  bytesDeclared: number,
  everyLine: boolean,
): Framing {
  // A length of 0, or an absent length, does not determine where the request ends: a client that
  // sends bytes after the head may have hidden another length.
  const hasBody = bytesDeclared > 0;
  if (hasBody && !everyLine) return "certain";
  const lines = new FramingLines();
  request.forEach(lines.take);
  const error = lines.error();
  if (error !== undefined) return { code: "invalid_framing", detail: error };
  // Without a body length the end is uncertain. uWS parses chunk sizes, their ends and extensions
  // loosely, and ignores a length after a header line without a name.
  return hasBody ? "certain" : "uncertain";
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
   * Returns the error for which RFC 9112 (3.2, 6.1, 6.3) requires a refusal; undefined for valid
   * framing.
   */
  error(): string | undefined {
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
