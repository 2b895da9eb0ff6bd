// Lists what can be wrong with a body, in the words that its client hears.

import { type ErrorCode, errorTable, type Problem } from "../../platform/base/errors.ts";
import type { Coding, Compression } from "./codings.ts";

/** Makes a problem whose detail is the title that the table has for its code. */
export function problemOf(code: ErrorCode): Problem {
  return { code, detail: errorTable[code].title };
}

export const noRoom: Problem = { code: "overloaded", detail: "No room for the body" };
export const noRoomToInflate: Problem = {
  code: "overloaded",
  detail: "No room to decompress the body",
};
export const tooManyToInflate: Problem = {
  code: "overloaded",
  detail: "Too many bodies to decompress came before this one",
};
export const tooManyToConvert: Problem = {
  code: "overloaded",
  detail: "Too many bodies to convert came before this one",
};
export const manyChunks: Problem = {
  code: "overloaded",
  detail: "The body comes in too many small chunks at once: send larger ones, or a Content-Length",
};

export const tinyChunks: Problem = {
  code: "invalid_framing",
  detail: "The body comes in chunks of a few bytes each: send larger ones, or a Content-Length",
};

export const emptyBody: Problem = { code: "empty_body", detail: "The request has no body" };
export const emptyInflated: Problem = {
  code: "empty_body",
  detail: "The body is empty after decompression",
};
export const emptyPayload: Problem = {
  code: "empty_body",
  detail: "The payload is empty: there is nothing in data, or in what it stands for",
};

export const dataTwice: Problem = {
  code: "invalid_payload",
  detail: "The form has more than one field data: send one",
};
export const compressedTwice: Problem = {
  code: "invalid_encoding",
  detail: "The body is compressed twice: compress it once, or send it as it is",
};
export const unsupportedEncoding: Problem = {
  code: "unsupported_encoding",
  detail: "Content-Encoding must be one of identity, gzip, deflate, br, zstd",
};

export function invalidEncoding(coding: Coding | Compression, fault: string): Problem {
  const action = coding === "base64" ? "Decode" : "Decompress";
  return { code: "invalid_encoding", detail: `${action} the body as ${coding}: ${fault}` };
}

/**
 * Names the length that was announced or, where none was, how many bytes had come when they were
 * too many.
 */
export function bodyTooLarge(
  { bytesDeclared, bytesArrived }: { bytesDeclared: number; bytesArrived: number },
  bodyBytesMax: number,
): Problem {
  const bytes = Math.max(bytesDeclared, bytesArrived);
  const came =
    bytesDeclared >= bytesArrived ? `has ${bytes} bytes` : `came to ${bytes} bytes and more`;
  return { code: "body_too_large", detail: `The body ${came}, and may have ${bodyBytesMax}` };
}

export function inflatedTooLarge(bytesMax: number): Problem {
  return { code: "inflated_too_large", detail: `More than ${bytesMax} bytes after decompression` };
}
