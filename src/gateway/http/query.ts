// Reads the query, the framing and the v1 headers of a request's head.

import { Ascii } from "../../platform/base/ascii.ts";
import { type Compression, compressionNamed } from "../body/payload-form.ts";
import { percentDecoded } from "./percent-decoded.ts";

interface QueryTarget {
  readonly body: { compression: Compression | undefined; queryData: string };
  querySentAtMs: number;
  answersNothing: boolean;
}

/** 2020-01-01. A smaller number is probably in seconds, and is ignored. */
const SENT_AT_MS_MIN = 1_577_836_800_000;
/** The largest time that a Date can have, in milliseconds since the epoch. */
const SENT_AT_MS_MAX = 8_640_000_000_000_000;

/** The longest known name, percent-encoded. */
const NAME_LENGTH_MAX = 3 * "compression".length;

/**
 * Stores the parameters of browser SDKs in the target; the first usable value counts. A query may
 * have 16 kB, so unknown parameters are not decoded.
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

/** `encoded` is the value as sent. `data` stays encoded until it is unpacked. */
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
  }
}

/**
 * Returns milliseconds since the epoch, `before` for a value that is empty or too small, and
 * infinity for any other value.
 */
function sentAtMsOf(value: string, before: number): number {
  if (value === "") return before;
  const sentAtMs = /^\d{1,16}$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
  if (sentAtMs < SENT_AT_MS_MIN) return before;
  return sentAtMs <= SENT_AT_MS_MAX ? sentAtMs : Number.POSITIVE_INFINITY;
}
