// The verdict of the rules on one event. The record writer and the answer use it.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { ItemErrorCode } from "../platform/base/errors.ts";
import { type DropCode, type WarningCode, warningCodes } from "../platform/base/warnings.ts";
import { stringBeginning } from "./token-beginning.ts";

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
/** The kind of an event, from its name. An index in `kinds`. */
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

/** The bit of each warning in `Verdict.warnings`, in the order of warningCodes. */
export const warningBit = Object.fromEntries(
  warningCodes.map((code, bit) => [code, 1 << bit]),
) as Record<WarningCode, number>;

export interface RequestFacts {
  /** Whether an event without a timestamp gets a warning. True on the historical lane and in v1. */
  readonly needsTimestamp: boolean;
  /** Whether an object without a name counts as a `$identify`. */
  readonly isEngage: boolean;
  /** The time of receipt by the wall clock, in milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Milliseconds by which the client's clock is ahead of the gateway's clock; 0 if unknown. */
  readonly skewMs: number;
}

/** A part of a buffer that is stored unchanged. */
export class Slice {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** The end of the part; 0 if there is no value to store. */
  end = 0;
}

type StoredUuid =
  /** The token is stored unchanged. */
  | "sent"
  /** `uuidText` is stored. */
  | "converted"
  /** A generated uuid is stored. */
  | "new";

/**
 * The result for one event. The same object is reused for all items. If a `…Text` is undefined, the
 * record copies the token.
 */
export class Verdict {
  /** Why the event is not stored. Only answers that list each event report `removed`. */
  drop: DropCode | "removed" | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  /** The detail of the `error`, for the client. */
  detail = "";
  warnings = 0;
  kind: Kind = Kind.Custom;
  eventText: string | undefined = undefined;
  personProfile = true;
  /** Start of the distinct id's token, quotes included. Unused if there is a `distinctIdText`. */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  uuid: StoredUuid = "sent";
  uuidText = "";
  /** The stored time in milliseconds since 1970, in the years 0 to 9999. */
  timestampMs = 0;
  /** The client's timestamp in milliseconds since 1970; NaN if there is no valid timestamp. */
  timestampSentMs = Number.NaN;
  /** Whether a person field was sent at any level. The caller must then fill the three slices. */
  hasPersonFields = false;
  /** JSON members of `replaced`: sent values that the record cannot have in their fields. */
  replaced = "";
  /** The version of the rules that changed the event; 0 if no rule did. */
  rules = 0;
  readonly set = new Slice();
  readonly setOnce = new Slice();
  readonly unset = new Slice();
}

export function isStorable({ drop, error }: Verdict): boolean {
  return drop === undefined && error === undefined;
}

/** Maximum bytes of a value that is stored unchanged. */
export const replacedBytesMax = 512;
/** Maximum characters that are stored, as text, of a longer value. */
export const replacedCharactersMax = 256;

/** Stores the sent value of `name`, unless a value of this name is already stored. */
export function keepReplaced(
  verdict: Pick<Verdict, "replaced">,
  name: string,
  token: Buffer,
): void {
  if (verdict.replaced !== "" && Object.hasOwn(JSON.parse(`{${verdict.replaced}}`), name)) return;
  const comma = verdict.replaced === "" ? "" : ",";
  verdict.replaced += `${comma}"${name}":${storedToken(token)}`;
}

function storedToken(token: Buffer): string {
  if (token.length <= replacedBytesMax) return token.toString().replaceAll(escapes, cleanEscape);
  const text =
    token[0] === Ascii.Quote
      ? stringBeginning(token, 0, token.length)
      : token.toString("utf8", 0, replacedBytesMax);
  const beginning = text.slice(0, replacedCharactersMax).toWellFormed();
  return JSON.stringify(beginning.replaceAll("\0", "\ufffd"));
}

/** Matches the escapes of a JSON text. A surrogate pair is one match. */
const escapes = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\./g;

/** Replaces the escapes of U+0000 and of lone surrogates, because databases reject them. */
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
