// Reads what browser SDKs put into a request's query: the payload itself, how it is compressed,
// when it was sent. Parameters that mean nothing here (`ip`, `ver`, `retry_count`, what a proxy
// adds) are ignored.

import { type Compression, compressionNamed } from "./body/codings.ts";
import { percentDecoded } from "./percent-decoded.ts";

interface QueryTarget {
  readonly body: { compression: Compression | undefined; queryData: string };
  querySentAtMs: number;
  answersNothing: boolean;
}

/** 2020-01-01. A smaller number is not milliseconds but probably seconds, and is ignored. */
const SENT_AT_MS_MIN = 1_577_836_800_000;
/** The last millisecond that a date can have. */
const SENT_AT_MS_MAX = 8_640_000_000_000_000;

/**
 * Notes what the query says. Where a parameter comes more than once, its first usable value counts.
 */
export function readQuery(query: string, target: QueryTarget): void {
  for (let start = 0; start < query.length; ) {
    let end = query.indexOf("&", start);
    if (end < 0) end = query.length;
    const equals = query.indexOf("=", start);
    if (equals > start && equals < end) {
      note(target, percentDecoded(query.slice(start, equals)), query.slice(equals + 1, end));
    }
    start = end + 1;
  }
}

/**
 * `encoded` is the value as it stands in the query. That of `data` stays percent-encoded until it
 * is unpacked.
 */
function note(target: QueryTarget, name: string, encoded: string): void {
  if (name === "data") {
    if (target.body.queryData === "") target.body.queryData = encoded;
    return;
  }
  const value = percentDecoded(encoded);
  switch (name) {
    case "_":
    case "sent_at":
      if (!Number.isFinite(target.querySentAtMs))
        target.querySentAtMs = sentAtMsOf(value, target.querySentAtMs);
      break;
    case "compression":
      target.body.compression ??= compressionNamed(value);
      break;
    case "beacon":
      if (value === "1") target.answersNothing = true;
      break;
  }
}

/**
 * Returns milliseconds since the epoch, an infinity for a value that is no time, and `before` for
 * one that is empty or too small.
 */
function sentAtMsOf(value: string, before: number): number {
  if (value === "") return before;
  const sentAtMs = /^\d{1,16}$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
  if (sentAtMs < SENT_AT_MS_MIN) return before;
  return sentAtMs <= SENT_AT_MS_MAX ? sentAtMs : Number.POSITIVE_INFINITY;
}
