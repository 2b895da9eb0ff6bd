// Reads the query, the framing and the v1 headers of a request.

import { Ascii, percentDecoded } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { type Compression, codingOf, compressionNamed } from "../body/payload-form.ts";
import type { V1Request } from "./port.ts";
import type { HttpRequest } from "./uws.ts";

interface QueryTarget {
  readonly body: { compression: Compression | undefined; queryData: string };
  querySentAtMs: number;
  answersNothing: boolean;
  isReplay: boolean;
}

const SENT_AT_MS_MIN = 1_577_836_800_000;
const SENT_AT_MS_MAX = 8_640_000_000_000_000;

const NAME_LENGTH_MAX = 3 * "compression".length;

/**
 * If a parameter occurs several times, the first usable value counts. Unknown parameters are not
 * decoded, because a query may have 16 kB.
 */
export function readQuery(query: string, target: QueryTarget): void {
  let start = 0;
  let equals = -1;
  for (let at = 0; at <= query.length; at++) {
    const code = at === query.length ? Ascii.Ampersand : query.charCodeAt(at);
    if (code === Ascii.Equals && equals < 0) equals = at;
    if (code !== Ascii.Ampersand) continue;
    if (equals > start && equals - start <= NAME_LENGTH_MAX)
      note(target, percentDecoded(query.slice(start, equals)), query.slice(equals + 1, at));
    start = at + 1;
    equals = -1;
  }
}

function note(target: QueryTarget, name: string, encoded: string): void {
  switch (name) {
    case "data":
      if (target.body.queryData === "") target.body.queryData = encoded;
      break;
    case "_":
    case "sent_at":
      if (!Number.isFinite(target.querySentAtMs))
        target.querySentAtMs = sentAtMsOf(percentDecoded(encoded), target.querySentAtMs);
      break;
    case "compression":
      target.body.compression ??= compressionNamed(percentDecoded(encoded));
      break;
    case "beacon":
      if (percentDecoded(encoded) === "1") target.answersNothing = true;
      break;
    case "replay":
      if (encoded === "1") target.isReplay = true;
      break;
  }
}

function sentAtMsOf(value: string, before: number): number {
  if (value === "") return before;
  const sentAtMs = /^\d{1,16}$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
  if (sentAtMs < SENT_AT_MS_MIN) return before;
  return sentAtMs <= SENT_AT_MS_MAX ? sentAtMs : Number.POSITIVE_INFINITY;
}

/**
 * The framing is `certain` if all parsers agree where a request ends. If not, the connection must
 * be closed after the answer, because a proxy may treat the following bytes as part of the body.
 * uWS is less strict than RFC 9112. It treats any transfer coding as chunked, and ignores all lines
 * after a header line without a name.
 */
type Framing = "certain" | "uncertain" | Problem;

/**
 * `bytesDeclared` is the first Content-Length, or -1. `everyLine` is true if a
 * proxy may have read the head.
 */
export function framingOf(
  request: HttpRequest,
  bytesDeclared: number,
  everyLine: boolean,
): Framing {
  // If no length is declared, the next bytes may be a body whose length only a proxy has seen.
  const hasBody = bytesDeclared > 0;
  if (hasBody && !everyLine) return "certain";
  const error = framingError(request);
  if (error !== undefined) return { code: "invalid_framing", detail: error };
  // uWS is less strict with chunks than RFC 9112, and ignores lines after one without a name.
  return hasBody ? "certain" : "uncertain";
}

/** Returns the error if RFC 9112 (3.2, 6.1, 6.3) requires the server to reject the request. */
function framingError(request: HttpRequest): string | undefined {
  let [lengths, codings, hosts] = [0, 0, 0];
  let [length, coding] = ["", ""];
  let lengthsDiffer = false;
  request.forEach((name, value) => {
    if (name === "content-length") {
      if (lengths++ > 0 && value !== length) lengthsDiffer = true;
      length = value;
    } else if (name === "transfer-encoding") {
      codings++;
      coding = value;
    } else if (name === "host") hosts++;
  });
  if (codings > 0 && lengths > 0) return "Both Content-Length and Transfer-Encoding were sent";
  if (codings > 1) return "Transfer-Encoding was sent more than once";
  if (codings > 0 && coding.trim().toLowerCase() !== "chunked")
    return "Transfer-Encoding must be chunked";
  if (lengthsDiffer) return "Different Content-Lengths were sent";
  if (lengths > 1) return "Content-Length was sent more than once";
  if (lengths > 0 && !/^\d+$/.test(length)) return "Content-Length must be a number";
  return hosts > 1 ? "Host was sent more than once" : undefined;
}

const bearer = /^bearer +/i;

export function readV1Head(
  request: HttpRequest,
  answerResults: V1Request["answerResults"],
): V1Request {
  const authorization = request.getHeader("authorization");
  // If the Authorization header has another scheme, it is meant for a proxy.
  const token = bearer.test(authorization) ? authorization.replace(bearer, "").trim() : "";
  return {
    apiKey: token === "" ? request.getHeader("posthog-api-token").trim() : token,
    requestId: request.getHeader("posthog-request-id").trim(),
    attempt: request.getHeader("posthog-attempt").trim(),
    requestTimestamp: request.getHeader("posthog-request-timestamp").trim(),
    sdkInfo: request.getHeader("posthog-sdk-info").trim(),
    answerResults,
  };
}

export function isV1Encoding(contentEncoding: string): boolean {
  const coding = codingOf(contentEncoding);
  return coding !== undefined && coding !== "lz64" && coding !== "base64";
}
