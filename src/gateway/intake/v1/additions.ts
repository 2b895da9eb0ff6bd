// Adds the session, window, options and SDK to the `properties` of a v1 event, because PostHog
// stores them there. If the client sends a member of the same name, the client's value counts.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../../platform/base/ascii.ts";
import {
  extraTypes,
  type ItemView,
  isNothing,
  isObjectOrNothing,
  isString,
  typeAt,
} from "../../../records/item-view.ts";
import { isEmptyArray, isEmptyObject } from "../../../records/property-check.ts";
import { Extra, ExtraShift, extraOf, FieldShift, Row, TokenType } from "../../../records/table.ts";
import { keepReplaced, type Verdict } from "../../../records/verdict.ts";

export const additionBytesMax = 4_096;

const parts =
  (0xf << ExtraShift.SessionId) | (0xf << ExtraShift.WindowId) | (0xf << ExtraShift.Options);
const switches = [
  ["cookieless_mode", "$cookieless_mode"],
  ["disable_skew_correction", "$ignore_sent_at"],
  ["process_person_profile", "$process_person_profile"],
] as const;

/** What is added to the events of a request. */
export interface Additions {
  /** The members that are added to every event. */
  readonly members: string;
  /** Whether the rules of the project have `cookieless`. */
  readonly isCookieless: boolean;
}

/** Returns whether options that are not read may have `cookieless_mode`, perhaps with escapes. */
function mayHaveFlag(token: Buffer): boolean {
  return token.includes("cookieless_mode") || token.includes("\\");
}

export type Ignored = Pick<Verdict, "replaced">;

/**
 * Returns the members to add, or "". In a project with `cookieless`, an event whose options cannot
 * be read and may have `cookieless_mode` counts as cookieless, so that it is not stored with the
 * data of its visitor.
 */
export function additionsTo(
  item: ItemView,
  { members, isCookieless }: Additions,
  ignored: Ignored,
): string {
  const types = extraTypes(item);
  if ((types & parts) === 0) return members;
  const { body, table, row } = item;
  const extra = extraOf(table, row);
  const tokenAt = (at: number): Buffer => body.subarray(table[extra + at], table[extra + at + 1]);
  const session = tokenAt(Extra.SessionIdStart);
  const window = tokenAt(Extra.WindowIdStart);
  const all = [
    idMember("session_id", typeAt(types, ExtraShift.SessionId), session, ignored),
    idMember("window_id", typeAt(types, ExtraShift.WindowId), window, ignored),
    optionMembers(tokenAt(Extra.OptionsStart), {
      type: typeAt(types, ExtraShift.Options),
      isCookieless,
      ignored,
    }),
    members,
  ];
  return all.filter((one) => one !== "").join(",");
}

function idMember(
  name: "session_id" | "window_id",
  type: TokenType,
  token: Buffer,
  ignored: Ignored,
): string {
  if (isNothing(type) || type === TokenType.EmptyString) return "";
  if (isString(type) && token.length <= additionBytesMax) return `"$${name}":${token}`;
  keepReplaced(ignored, name, token);
  return "";
}

function optionMembers(
  token: Buffer,
  {
    type,
    isCookieless,
    ignored,
  }: { readonly type: TokenType; readonly isCookieless: boolean; readonly ignored: Ignored },
): string {
  if (isNothing(type)) return "";
  if (type === TokenType.Array && isEmptyArray(token, 0, token.length)) return "";
  const ignore = (): void => keepReplaced(ignored, "options", token);
  if (type !== TokenType.Object || token.length > additionBytesMax) {
    ignore();
    return isCookieless && mayHaveFlag(token) ? '"$cookieless_mode":true' : "";
  }
  const options = JSON.parse(token.toString()) as Record<string, unknown>;
  const members: string[] = [];
  for (const [option, property] of switches) {
    const value = options[option];
    if (value === undefined || value === null) continue;
    const isOn = switchOf(value);
    if (isOn === undefined) ignore();
    if (isOn !== undefined || (isCookieless && option === "cookieless_mode"))
      members.push(`"${property}":${isOn ?? true}`);
  }
  const { product_tour_id: tour } = options;
  if (tour !== undefined && tour !== null) {
    if (typeof tour !== "string" && !Number.isSafeInteger(tour)) ignore();
    else members.push(`"$product_tour_id":${JSON.stringify(String(tour))}`);
  }
  return members.join(",");
}

function switchOf(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  if (typeof value !== "string") return undefined;
  const text = value.trim().toLowerCase();
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

export function takesAdditions({ body, table, row }: ItemView): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  if (type !== TokenType.Array) return isObjectOrNothing(type);
  return isEmptyArray(body, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!);
}

export function bytesWithAdditions({ table, row }: ItemView, additions: string): number {
  return (
    table[row + Row.ItemEnd]! -
    table[row + Row.ItemStart]! +
    3 * additions.length +
    '"properties":{},'.length
  );
}

export function writeWithAdditions(
  { body, table, row }: ItemView,
  additions: string,
  target: Buffer,
): number {
  const [itemStart, itemEnd] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
  const [start, end] = [table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!];
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  if (type === TokenType.Absent) {
    const separator = isEmptyObject(body, itemStart, itemEnd) ? "" : ",";
    const at = target.write(`{"properties":{${additions}}${separator}`, "utf8");
    return at + body.copy(target, at, itemStart + 1, itemEnd);
  }
  let at = body.copy(target, 0, itemStart, start);
  target[at++] = Ascii.OpenBrace;
  at += target.write(additions, at, "utf8");
  if (type !== TokenType.Object || isEmptyObject(body, start, end)) {
    target[at++] = Ascii.CloseBrace;
    return at + body.copy(target, at, end, itemEnd);
  }
  at += target.write(",", at, "latin1");
  return at + body.copy(target, at, start + 1, itemEnd);
}
