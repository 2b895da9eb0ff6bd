// What the rules say of one event, for the record writer and for the answer. The rules write it,
// nobody else.

import { Buffer } from "node:buffer";
import type { ItemErrorCode } from "../base/errors.ts";
import { type DropCode, type WarningCode, warningCodes } from "../base/warnings.ts";

/** The kinds of events, as records name them. */
export const kinds = [
  "custom",
  "pageview",
  "screen",
  "identify",
  "alias",
  "group_identify",
  "survey",
  "set",
] as const;
/** What an event is, by its name: index in `kinds`. */
export const Kind = {
  Custom: 0,
  Pageview: 1,
  Screen: 2,
  Identify: 3,
  Alias: 4,
  GroupIdentify: 5,
  Survey: 6,
  Set: 7,
} as const;
export type Kind = (typeof Kind)[keyof typeof Kind];

/** Bit n of `Verdict.warnings` is warningCodes[n]. */
export const warningBit = Object.fromEntries(
  warningCodes.map((code, bit) => [code, 1 << bit]),
) as Record<WarningCode, number>;

/**
 * Two warnings do not come from the rules, but from the repair of the body and from its envelope.
 */
export const invalidUtf8Warning = warningBit.invalid_utf8;
export const invalidSentAtWarning = warningBit.invalid_sent_at;

/** What the rules must know of an event's request. */
export interface RequestFacts {
  /** An event without a timestamp gets a warning: in history, and in the newer protocol. */
  readonly needsTimestamp: boolean;
  /** An object without a name is a `$identify`. */
  readonly isEngage: boolean;
  /** Wall clock, milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** So far is the client's clock ahead of ours; 0 where it did not say. */
  readonly skewMs: number;
}

/** Part of some buffer that is stored as it is. */
export class Slice {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** 0: nothing. */
  end = 0;
}

/**
 * What the rules say of one item; one object, reused for every item. Where a `…Text` is undefined,
 * the record copies the token from the body; otherwise it holds what to store instead.
 */
export class Verdict {
  /** `removed`: the event is of no use to anybody, and nobody is told. */
  drop: DropCode | "removed" | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  /** What was wrong, for the client; only with `error`. */
  detail = "";
  warnings = 0;
  kind: Kind = Kind.Custom;
  /** The event has no name of its own: it is stored under this one. */
  eventText: string | undefined = undefined;
  personProfile = true;
  /**
   * Span of the token that is the distinct id, quotes included; not used when there is a
   * `distinctIdText`.
   */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  /** `new`: none came, or no valid one. `converted`: `uuidText` is stored instead of the token. */
  uuid: "sent" | "converted" | "new" = "sent";
  uuidText = "";
  /** When it happened, to be stored: milliseconds since 1970, of the years 0 to 9999. */
  timestampMs = 0;
  /** The same as the client's timestamp said; NaN where none came, or none that can be read. */
  timestampSentMs = Number.NaN;
  /**
   * Some of $set, $set_once and $unset came, in one place or the other: the three slices are to be
   * filled.
   */
  hasPersonFields = false;
  readonly set = new Slice();
  readonly setOnce = new Slice();
  readonly unset = new Slice();
}

/** Neither left out nor in error, as far as it is judged. */
export function isStorable({ drop, error }: Verdict): boolean {
  return drop === undefined && error === undefined;
}

/** The item ends in an error, whatever it was before. `detail` is for the client. */
export function refuse(verdict: Verdict, error: ItemErrorCode, detail: string): undefined {
  verdict.drop = undefined;
  verdict.error = error;
  verdict.detail = detail;
  return undefined;
}
