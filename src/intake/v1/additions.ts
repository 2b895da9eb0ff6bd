// What an event of the newer protocol (v1) says outside of its properties and PostHog keeps inside:
// session, window, options, SDK. Makes the members to be put there. They come first, and the last
// member of a name is kept, so what `properties` have already counts.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";
import { extraTypes, type ItemView, isNothing, isString, typeAt } from "../../events/item-view.ts";
import { Extra, ExtraShift, extraOf, FieldShift, Row, TokenType } from "../../scan/table.ts";

/** A longer token is no session's id, and no options. */
const tokenBytesMax = 4_096;

const parts =
  (0xf << ExtraShift.SessionId) | (0xf << ExtraShift.WindowId) | (0xf << ExtraShift.Options);
const switches = [
  ["cookieless_mode", "$cookieless_mode"],
  ["disable_skew_correction", "$ignore_sent_at"],
  ["process_person_profile", "$process_person_profile"],
] as const;

/**
 * Members of a JSON object, parted by commas, or "" for none; undefined where one of them is not
 * what it must be. `lib`: those of each event.
 */
export function additionsTo(item: ItemView, lib: string): string | undefined {
  const types = extraTypes(item);
  if ((types & parts) === 0) return lib;
  const { body, table, row } = item;
  const extra = extraOf(table, row);
  const spanOf = (at: number): Span => ({
    body,
    start: table[extra + at]!,
    end: table[extra + at + 1]!,
  });
  const all = [
    idMember("$session_id", typeAt(types, ExtraShift.SessionId), spanOf(Extra.SessionIdStart)),
    idMember("$window_id", typeAt(types, ExtraShift.WindowId), spanOf(Extra.WindowIdStart)),
    optionMembers(typeAt(types, ExtraShift.Options), spanOf(Extra.OptionsStart)),
    lib,
  ];
  return all.includes(undefined) ? undefined : all.filter((members) => members !== "").join(",");
}

interface Span {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
}

function idMember(name: string, type: TokenType, { body, start, end }: Span): string | undefined {
  if (isNothing(type) || type === TokenType.EmptyString) return "";
  if (!isString(type) || end - start > tokenBytesMax) return undefined;
  return `"${name}":${body.toString("utf8", start, end)}`;
}

function optionMembers(type: TokenType, { body, start, end }: Span): string | undefined {
  if (isNothing(type)) return "";
  if (type !== TokenType.Object || end - start > tokenBytesMax) return undefined;
  const options = JSON.parse(body.toString("utf8", start, end)) as Record<string, unknown>;
  const members: string[] = [];
  for (const [option, property] of switches) {
    const value = options[option];
    if (value === undefined || value === null) continue;
    const isOn = switchOf(value);
    if (isOn === undefined) return undefined;
    members.push(`"${property}":${isOn}`);
  }
  const { product_tour_id: tour } = options;
  if (tour !== undefined && tour !== null) {
    if (typeof tour !== "string" && !Number.isSafeInteger(tour)) return undefined;
    members.push(`"$product_tour_id":${JSON.stringify(String(tour))}`);
  }
  return members.join(",");
}

/** As PostHog reads one: also a text or a number that means true or false. */
function switchOf(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  if (typeof value !== "string") return undefined;
  const text = value.trim().toLowerCase();
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

/** Whether there is a place for them: what is wrong with `properties` is for the rules to say. */
export function takesAdditions({ table, row }: ItemView): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  return type === TokenType.Object || isNothing(type);
}

/** Bytes that `writeWithAdditions` writes at most. */
export function bytesWithAdditions({ table, row }: ItemView, additions: string): number {
  return (
    table[row + Row.ItemEnd]! -
    table[row + Row.ItemStart]! +
    3 * additions.length +
    '"properties":{},'.length
  );
}

/**
 * Writes the item, with the members in its `properties`, from the target's start on; answers where
 * it ends.
 */
export function writeWithAdditions(
  { body, table, row }: ItemView,
  additions: string,
  target: Buffer,
): number {
  const [itemStart, itemEnd] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
  const [start, end] = [table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!];
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  if (type === TokenType.Absent) {
    const at = target.write(`{"properties":{${additions}},`, "utf8");
    return at + body.copy(target, at, itemStart + 1, itemEnd);
  }
  let at = body.copy(target, 0, itemStart, start);
  target[at++] = Ascii.OpenBrace;
  at += target.write(additions, at, "utf8");
  if (type === TokenType.Null || isBlank(body, start + 1, end)) {
    target[at++] = Ascii.CloseBrace;
    return at + body.copy(target, at, end, itemEnd);
  }
  at += target.write(",", at, "latin1");
  return at + body.copy(target, at, start + 1, itemEnd);
}

/** Whether an object has no member; [start, end) is its inside and its closing brace. */
function isBlank(body: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && body[at]! <= Ascii.Space) at++;
  return body[at] === Ascii.CloseBrace;
}
