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

export const warningBit = Object.fromEntries(
  warningCodes.map((code, bit) => [code, 1 << bit]),
) as Record<WarningCode, number>;

export interface RequestFacts {
  readonly needsTimestamp: boolean;
  readonly isEngage: boolean;
  readonly receivedAtMs: number;
  /** Milliseconds by which the client's clock is ahead; 0 if unknown. */
  readonly skewMs: number;
}

export class Slice {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** 0 if there is no value to store. */
  end = 0;
}

type StoredUuid = "sent" | "converted" | "new";

/** The same object is reused for all items. If a `…Text` is undefined, the token is copied. */
export class Verdict {
  /** Only answers that list each event report `removed`. */
  drop: DropCode | "removed" | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  detail = "";
  warnings = 0;
  kind: Kind = Kind.Custom;
  eventText: string | undefined = undefined;
  personProfile = true;
  /** Quotes included. Unused if there is a `distinctIdText`. */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  uuid: StoredUuid = "sent";
  uuidText = "";
  /** In milliseconds since 1970, in the years 0 to 9999. */
  timestampMs = 0;
  /** NaN if the client sent no valid timestamp. */
  timestampSentMs = Number.NaN;
  /** If true, the caller must fill the three slices. */
  hasPersonFields = false;
  /** JSON members of `replaced`: sent values that the record cannot have in their fields. */
  replaced = "";
  /** The version of the rules that changed the event; 0 if no rule did. */
  rules = 0;
  /** The result of the event's schema, as JSON; "" if the record does not have it. */
  schema = "";
  readonly set = new Slice();
  readonly setOnce = new Slice();
  readonly unset = new Slice();
}

export function isStorable({ drop, error }: Verdict): boolean {
  return drop === undefined && error === undefined;
}

/** Maximum number of errors of a schema that a record has. */
export const schemaErrorsMax = 5;
export const replacedBytesMax = 512;
export const replacedCharactersMax = 256;

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

const escapes = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\./g;

/** Databases reject U+0000 and lone surrogates. */
function cleanEscape(text: string): string {
  const isUnfit = text.length === 6 && /^\\u(?:0000|[dD][89a-fA-F])/.test(text);
  return isUnfit ? "\\ufffd" : text;
}

export function refuse(verdict: Verdict, error: ItemErrorCode, detail: string): undefined {
  verdict.drop = undefined;
  verdict.error = error;
  verdict.detail = detail;
  return undefined;
}
