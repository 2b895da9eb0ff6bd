// Reads what a request says of itself in its query, as browser SDKs do: the payload itself, how it
// is compressed, when it was sent. Parameters that mean nothing here (`ip`, `ver`, `retry_count`,
// what a proxy adds) are ignored.

import { type Compression, compressionNamed } from "./body/codings.ts";
import { percentDecoded } from "./body/percent-decoded.ts";

export interface QueryTarget {
  readonly body: { compression: Compression | undefined; queryData: string };
  querySentAtMs: number;
  answersNothing: boolean;
}

/** 2020-01-01. A smaller number of milliseconds was one of seconds. */
const SENT_AT_MS_MIN = 1_577_836_800_000;
/** The last millisecond that a date can have. */
const SENT_AT_MS_MAX = 8_640_000_000_000_000;

/** Notes what the query says. The first value of a parameter that means something counts. */
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

/** `encoded` is the value as it stands there; `data` stays so until it is unpacked. */
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
 * Returns milliseconds since the epoch; an infinity for what is no time, and `before` where nothing
 * is said.
 */
function sentAtMsOf(value: string, before: number): number {
  if (value === "") return before;
  const sentAtMs = /^\d{1,16}$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
  if (sentAtMs < SENT_AT_MS_MIN) return before;
  return sentAtMs <= SENT_AT_MS_MAX ? sentAtMs : Number.POSITIVE_INFINITY;
}
