// The verdict of the rules on one event, for the record writer and for the answer. Only the rules
// write it, and the code that calls them.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { ItemErrorCode } from "../platform/base/errors.ts";
import { type DropCode, type WarningCode, warningCodes } from "../platform/base/warnings.ts";
import { stringBeginning } from "./token-beginning.ts";

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

/** The bit of each warning in `Verdict.warnings`: bit n is warningCodes[n]. */
export const warningBit = Object.fromEntries(
  warningCodes.map((code, bit) => [code, 1 << bit]),
) as Record<WarningCode, number>;

/** What the rules must know of the request that an event came in. */
export interface RequestFacts {
  /**
   * An event without a timestamp gets a warning: on the historical lane, and in the newer protocol
   * (v1).
   */
  readonly needsTimestamp: boolean;
  /** An event that is an object without a name counts as a `$identify`. */
  readonly isEngage: boolean;
  /** The time of receipt by the wall clock, in milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Milliseconds by which the client's clock is ahead of ours; 0 where the client did not say. */
  readonly skewMs: number;
}

/** A part of some buffer that is stored as it is. */
export class Slice {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** 0 where there is nothing to store. */
  end = 0;
}

/**
 * The verdict on one item. One object is reused for every item. Where a `…Text` is undefined, the
 * record copies the token from the body; otherwise the text is stored instead.
 */
export class Verdict {
  /**
   * `removed`: the event is of no use to anybody. Only a client that is told of each event hears of
   * it.
   */
  drop: DropCode | "removed" | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  /** What was wrong, for the client. Set only with `error`. */
  detail = "";
  warnings = 0;
  kind: Kind = Kind.Custom;
  /** The name under which an event is stored that has none of its own. */
  eventText: string | undefined = undefined;
  personProfile = true;
  /**
   * The span of the token that is the distinct id, quotes included. Not used when there is a
   * `distinctIdText`.
   */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  /**
   * `new`: no valid uuid came, and one is made. `sent`: the token is stored. `converted`:
   * `uuidText` is stored instead of the token.
   */
  uuid: "sent" | "converted" | "new" = "sent";
  uuidText = "";
  /** When the event happened, as it is stored: milliseconds since 1970, in the years 0 to 9999. */
  timestampMs = 0;
  /**
   * When the event happened by the client's timestamp; NaN where none came, or none that can be
   * read.
   */
  timestampSentMs = Number.NaN;
  /**
   * Whether some of $set, $set_once and $unset came, in one place or the other: then the three
   * slices are to be filled.
   */
  hasPersonFields = false;
  /**
   * The JSON members of `replaced`, which has the values as they were sent that the record cannot
   * have; "" if there are none. Set by `keepReplaced` alone.
   */
  replaced = "";
  readonly set = new Slice();
  readonly setOnce = new Slice();
  readonly unset = new Slice();
}

/** Whether the event is neither left out nor in error, as far as it is judged. */
export function isStorable({ drop, error }: Verdict): boolean {
  return drop === undefined && error === undefined;
}

/** A value of at most this many bytes is kept as it was sent. */
export const replacedBytesMax = 512;
/** Of a longer value, this many characters of its text are kept. */
export const replacedCharactersMax = 256;

/**
 * Keeps in the record what was sent as `name`: the record has another value, or none, for it. Of two
 * of one name, from the event and from its `properties`, the first is kept.
 */
export function keepReplaced(
  verdict: Pick<Verdict, "replaced">,
  name: string,
  token: Buffer,
): void {
  if (verdict.replaced !== "" && Object.hasOwn(JSON.parse(`{${verdict.replaced}}`), name)) return;
  const comma = verdict.replaced === "" ? "" : ",";
  verdict.replaced += `${comma}"${name}":${keptToken(token)}`;
}

function keptToken(token: Buffer): string {
  if (token.length <= replacedBytesMax) return token.toString().replaceAll(escapes, cleanEscape);
  const text =
    token[0] === Ascii.Quote
      ? stringBeginning(token, 0, token.length)
      : token.toString("utf8", 0, replacedBytesMax);
  const beginning = text.slice(0, replacedCharactersMax).toWellFormed();
  return JSON.stringify(beginning.replaceAll("\0", "\ufffd"));
}

/** The escapes of a JSON text, a surrogate pair as one. */
const escapes = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\./g;

/** No record holds U+0000 or half a surrogate pair: databases refuse both. */
function cleanEscape(text: string): string {
  const isUnfit = text.length === 6 && /^\\u(?:0000|[dD][89a-fA-F])/.test(text);
  return isUnfit ? "\\ufffd" : text;
}

/** Makes the verdict an error, whatever it was before. `detail` is for the client. */
export function refuse(verdict: Verdict, error: ItemErrorCode, detail: string): undefined {
  verdict.drop = undefined;
  verdict.error = error;
  verdict.detail = detail;
  return undefined;
}
