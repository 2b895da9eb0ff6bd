// The results of the rules for one event. The writer of records and the answer use them.

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
  /** The number of milliseconds by which the client's clock is ahead. It is 0 if it is unknown. */
  readonly skewMs: number;
}

export class Slice {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** The end is 0 if there is no value to store. */
  end = 0;
}

type StoredUuid = "sent" | "converted" | "new";

/**
 * The result of the rules. The same object is used for all items. If a `…Text` is undefined, the
 * token of the body is copied to the record.
 */
export class Verdict {
  /** `removed` is listed only in answers that contain the outcome of each event. */
  drop: DropCode | "removed" | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  detail = "";
  warnings = 0;
  kind: Kind = Kind.Custom;
  eventText: string | undefined = undefined;
  personProfile = true;
  /** The span of the distinct id with its quotes. It is unused if there is a `distinctIdText`. */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  uuid: StoredUuid = "sent";
  uuidText = "";
  /** The time of the event in milliseconds since 1970. It is in the years 0 to 9999. */
  timestampMs = 0;
  /** The timestamp that the client sent. It is NaN if it sent no valid timestamp. */
  timestampSentMs = Number.NaN;
  /** If this is true, the caller must set the three slices. */
  hasPersonFields = false;
  /**
   * The members of the field `replaced`, as JSON. They contain values of the client that cannot be
   * stored in their own fields.
   */
  replaced = "";
  /** Whether the record must not have the client's address. */
  hidesAddress = false;
  /** Whether the project's rules changed the event or its address. */
  changedByRules = false;
  /** The member of the record with the result of the event's schema; undefined for none. */
  schema: Buffer | undefined = undefined;
  readonly set = new Slice();
  readonly setOnce = new Slice();
  readonly unset = new Slice();
}

/** Returns the member of a record with the result of a schema, after a comma. */
export function schemaMember(result: object): Buffer {
  return Buffer.from(`,"schema":${JSON.stringify(result)}`);
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

/** Removes members from the field `replaced`. Returns whether it had any of them. */
export function forgetReplaced(
  verdict: Pick<Verdict, "replaced">,
  names: ReadonlySet<string>,
): boolean {
  if (names.size === 0) return false;
  const members = Object.entries(JSON.parse(`{${verdict.replaced}}`) as Record<string, unknown>);
  const left = members.filter(([name]) => !names.has(name));
  if (left.length === members.length) return false;
  verdict.replaced = JSON.stringify(Object.fromEntries(left)).slice(1, -1);
  return true;
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

/** Replaces an escaped U+0000 or lone surrogate, because databases reject both. */
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
