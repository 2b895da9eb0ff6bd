import { type ErrorCode, errorTable, type Problem } from "../../platform/base/errors.ts";

export function problemOf(code: ErrorCode): Problem {
  return { code, detail: errorTable[code].title };
}

export const noRoom: Problem = {
  code: "overloaded",
  detail: "The gateway has no memory left for the body: its budget of bytes in flight is used up",
};
export const noRoomToInflate: Problem = {
  code: "overloaded",
  detail:
    "The gateway has no memory left to decompress the body: its budget of bytes in flight is used up",
};
export const tooManyToInflate: Problem = {
  code: "overloaded",
  detail: "Too many bodies are waiting to be decompressed",
};
export const tooManyToConvert: Problem = {
  code: "overloaded",
  detail: "Too many bodies are waiting to be converted",
};
export const manyChunks: Problem = {
  code: "overloaded",
  detail: "The body arrives in too many small chunks: send larger chunks, or a Content-Length",
};

export const tinyChunks: Problem = {
  code: "invalid_framing",
  detail: "The body arrives in chunks of a few bytes each: send larger chunks, or a Content-Length",
};

export const emptyBody: Problem = { code: "empty_body", detail: "The request has no body" };
export const emptyInflated: Problem = {
  code: "empty_body",
  detail: "The body is empty after decompression",
};
export const emptyPayload: Problem = {
  code: "empty_body",
  detail: "The payload is empty, before or after decoding",
};

export const duplicateData: Problem = {
  code: "invalid_payload",
  detail: "The form has several fields named data: send only one",
};
export const compressedTwice: Problem = {
  code: "invalid_encoding",
  detail: "The body is compressed twice: compress it once, or not at all",
};
export const unsupportedEncoding: Problem = {
  code: "unsupported_encoding",
  detail: "Content-Encoding must be one of identity, gzip, deflate, br, zstd",
};

export function invalidEncoding(coding: string, error: string): Problem {
  return { code: "invalid_encoding", detail: `The body is not valid ${coding}: ${error}` };
}

export function bodyTooLarge(
  { bytesDeclared, bytesArrived }: { bytesDeclared: number; bytesArrived: number },
  bodyBytesMax: number,
): Problem {
  const bytes = Math.max(bytesDeclared, bytesArrived);
  const size = bytesDeclared >= bytesArrived ? `has ${bytes} bytes` : `has at least ${bytes} bytes`;
  return {
    code: "body_too_large",
    detail: `The body ${size}, more than the maximum of ${bodyBytesMax}`,
  };
}

export function inflatedTooLarge(bytesMax: number): Problem {
  return {
    code: "inflated_too_large",
    detail: `The body has more than ${bytesMax} bytes after decompression`,
  };
}
