// Finds from the head where a request ends, and whether a proxy in front could see another end. If
// so, the bytes after it would be a request for one parser and a body for the other. uWS is looser
// than RFC 9112: it uses the first of several lengths, treats any transfer coding as chunked and an
// empty length as absent, and ignores header lines after one without a name.

import type { Problem } from "../../platform/base/errors.ts";
import type { HttpRequest } from "./uws.ts";

/**
 * The end of a `certain` request is the same for all parsers. With an `uncertain` one the
 * connection must end with the answer.
 */
type Framing = "certain" | "uncertain" | Problem;

/**
 * `bytesDeclared` is the first Content-Length, -1 if absent. `everyLine`: reads all header lines
 * even if that length suffices, because a proxy may have read the head. uWS has already rejected a
 * length that is not digits, and a length with a transfer coding.
 */
export function framingOf(
  request: HttpRequest,
  bytesDeclared: number,
  everyLine: boolean,
): Framing {
  // Without a length, bytes after the head may belong to a length that the client has hidden.
  const hasBody = bytesDeclared > 0;
  if (hasBody && !everyLine) return "certain";
  const lines = new FramingLines();
  request.forEach(lines.take);
  const error = lines.error();
  if (error !== undefined) return { code: "invalid_framing", detail: error };
  // uWS parses chunks loosely, and ignores a length after a header line without a name.
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

  /** Returns the error for which RFC 9112 (3.2, 6.1, 6.3) requires a rejection. */
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
