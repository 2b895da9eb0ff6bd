// The rules for one event, in the order of the design's table: drop, item error, or stored with remarks.
// One set of rules for every item: whatever was not plain has been normalised and scanned again before it comes here.
// Reads types and bytes from the scan table, builds no object for the event. Must not write anything.

import { Buffer } from "node:buffer";
import { type ItemErrorCode, type WarningCode, warningCodes } from "../errors.ts";
import { FieldShift, MoreShift, PropertyShift, Row, TokenType } from "../scan/table.ts";
import { distinctIdCharactersMax, distinctIdText } from "./distinct-id.ts";
import { isStoredTimestamp, storedTimestamp } from "./timestamp.ts";
import { stringBeginning } from "./token-beginning.ts";
import { UuidForm, uuidBytes, uuidForm } from "./uuid.ts";

/** Every character written \uXXXX, and the quotes. */
const escapedUuidBytesMax = 6 * uuidBytes + 2;
/** No form of a timestamp that is read has 48 characters. */
const escapedTimestampBytesMax = 6 * 48 + 2;

export const kinds = ["custom", "pageview", "screen", "identify", "alias", "group_identify", "survey"] as const;
export type Kind = (typeof kinds)[number];

const specialKinds: ReadonlyMap<string, Kind> = new Map([
  ["$pageview", "pageview"],
  ["$screen", "screen"],
  ["$identify", "identify"],
  ["$create_alias", "alias"],
  ["$groupidentify", "group_identify"],
  ["$group_identify", "group_identify"],
  ["survey sent", "survey"],
  ["survey shown", "survey"],
  ["survey dismissed", "survey"],
]);

export type DropReason = "no_event" | "no_distinct_id";

/** Bit n of `Verdict.warnings` is warningCodes[n]. */
const warningBit = Object.fromEntries(warningCodes.map((code, bit) => [code, 1 << bit])) as Record<WarningCode, number>;

/** The one remark that is not of these rules: who repaired the body knows of it. */
export const invalidUtf8Warning = warningBit.invalid_utf8;

/**
 * What the rules say of one item; one object, reused for every item. Where a `…Text` is undefined, the record copies the token
 * from the body; otherwise it holds what to store instead.
 */
export class Verdict {
  drop: DropReason | undefined = undefined;
  error: ItemErrorCode | undefined = undefined;
  /** What was wrong, for the client; only with `error`. */
  detail = "";
  warnings = 0;
  kind: Kind = "custom";
  personProfile = true;
  /** Span of the token that is the distinct id, quotes included; not used when there is a `distinctIdText`. */
  distinctIdStart = 0;
  distinctIdEnd = 0;
  distinctIdText: string | undefined = undefined;
  distinctIdCut = false;
  /** `new`: none came, or no valid one. `converted`: `uuidText` is stored instead of the token. */
  uuid: "sent" | "converted" | "new" = "sent";
  uuidText = "";
  /** `received`: none came, or no valid one. */
  timestamp: "sent" | "converted" | "received" = "sent";
  timestampText = "";
}

type StringToken = typeof TokenType.PlainString | typeof TokenType.EscapedString;

/** A string with something in it. */
export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Absent, as far as an event is concerned: clients write null for "none". */
export function isNothing(type: TokenType): type is typeof TokenType.Absent | typeof TokenType.Null {
  return type === TokenType.Absent || type === TokenType.Null;
}

/** Sent as an object, or not sent. */
export function isObjectOrNothing(type: TokenType): boolean {
  return type === TokenType.Object || isNothing(type);
}

/** A value that can name something: a string that is not empty, or a number. */
export function isName(type: TokenType): boolean {
  return isString(type) || type === TokenType.Number;
}

function typeAt(word: number, shift: number): TokenType {
  // The one place where a number out of the addon is taken for its type.
  return ((word >>> shift) & 0xf) as TokenType;
}

/** An item as the rules look at it: a body, the scan table of that body, and the first word of the item's row. */
export interface ItemView {
  readonly body: Buffer;
  readonly table: Uint32Array;
  readonly row: number;
}

/** Judges the item; `historical`: a missing timestamp is worth a remark. */
export function judgeItem(item: ItemView, historical: boolean, verdict: Verdict): void {
  const { table, row } = item;
  const fields = table[row + Row.FieldTypes]!;
  verdict.drop = undefined;
  verdict.error = undefined;
  verdict.warnings = 0;
  const name = eventName(item, typeAt(fields, FieldShift.Event));
  if (name === undefined) {
    verdict.drop = "no_event";
    return;
  }
  judgeDistinctId(item, fields, verdict);
  if (verdict.drop !== undefined) return;
  verdict.kind = specialKinds.get(name) ?? "custom";
  const properties = table[row + Row.PropertyTypes]!;
  judgeObjects(fields, properties, verdict);
  if (verdict.error !== undefined) return;
  if (verdict.kind !== "custom") {
    judgeSpecial(item, fields, properties, verdict);
    if (verdict.error !== undefined) return;
  }
  judgePersonProfile(typeAt(properties, PropertyShift.ProcessPersonProfile), verdict);
  judgeTimestamp(item, typeAt(fields, FieldShift.Timestamp), historical, verdict);
  judgeUuid(item, typeAt(fields, FieldShift.Uuid), verdict);
}

const DOLLAR = 0x24;
const LETTER_S = 0x73;
/** "survey dismissed" and "$create_alias", in quotes, are shorter. */
const specialNameBytesMax = 32;

/**
 * The name when it may be a special one, "" for any other name, undefined when there is none. A name is stored as it is, however long;
 * one that is blank as far as it is read counts as blank.
 */
function eventName({ body, table, row }: ItemView, type: TokenType): string | undefined {
  if (!isString(type)) return undefined;
  const start = table[row + Row.EventStart]!;
  const end = table[row + Row.EventEnd]!;
  if (type === TokenType.PlainString) {
    const first = body[start + 1]!;
    if ((first === DOLLAR || first === LETTER_S) && end - start <= specialNameBytesMax) {
      return body.toString("latin1", start + 1, end - 1);
    }
    if (isVisible(first)) return "";
  }
  const name = stringBeginning(body, start, end);
  return name.trim() === "" ? undefined : name;
}

/** An ASCII character that no trimming removes: what begins with it is not blank. */
function isVisible(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}

function judgeDistinctId({ body, table, row }: ItemView, fields: number, verdict: Verdict): void {
  let type = typeAt(fields, FieldShift.DistinctId);
  let span = row + Row.DistinctIdStart;
  if (isNothing(type)) {
    type = typeAt(fields, FieldShift.PropertiesDistinctId);
    span = row + Row.PropertiesDistinctIdStart;
  }
  if (isNothing(type) || type === TokenType.EmptyString) {
    verdict.drop = "no_distinct_id";
    return;
  }
  const start = table[span]!;
  const end = table[span + 1]!;
  verdict.distinctIdStart = start;
  verdict.distinctIdEnd = end;
  verdict.distinctIdText = undefined;
  verdict.distinctIdCut = false;
  // No string of that many bytes has more characters, so this one needs neither cutting nor cleaning.
  const short = end - start - 2 <= distinctIdCharactersMax;
  if (type === TokenType.PlainString && short && isVisible(body[start + 1]!)) return;
  const { text, cut } = distinctIdText(body, start, end, type);
  if (text === "") verdict.drop = "no_distinct_id";
  verdict.distinctIdText = text;
  verdict.distinctIdCut = cut;
}

function fail(verdict: Verdict, error: ItemErrorCode, detail: string): void {
  verdict.error = error;
  verdict.detail = detail;
}

function judgeObjects(fields: number, properties: number, verdict: Verdict): void {
  const wrong = !isObjectOrNothing(typeAt(fields, FieldShift.Properties))
    ? "properties"
    : !isObjectOrNothing(typeAt(fields, FieldShift.Set))
      ? "$set"
      : !isObjectOrNothing(typeAt(fields, FieldShift.SetOnce))
        ? "$set_once"
        : !isObjectOrNothing(typeAt(properties, PropertyShift.Set))
          ? "properties.$set"
          : !isObjectOrNothing(typeAt(properties, PropertyShift.GroupSet))
            ? "properties.$group_set"
            : !isObjectOrNothing(typeAt(properties, PropertyShift.Groups))
              ? "properties.$groups"
              : undefined;
  if (wrong !== undefined) fail(verdict, "invalid_properties", `${wrong} must be an object`);
}

function judgeSpecial({ table, row }: ItemView, fields: number, properties: number, verdict: Verdict): void {
  const more = table[row + Row.MoreTypes]!;
  switch (verdict.kind) {
    case "alias":
      if (!isString(typeAt(properties, PropertyShift.Alias))) {
        fail(verdict, "missing_alias", "properties.alias must be a string that is not empty");
      }
      return;
    case "group_identify":
      if (!isName(typeAt(properties, PropertyShift.GroupType)) || !isName(typeAt(properties, PropertyShift.GroupKey))) {
        fail(verdict, "missing_group", "properties.$group_type and properties.$group_key must both be given");
      } else if (isNothing(typeAt(properties, PropertyShift.GroupSet))) {
        verdict.warnings |= warningBit.missing_group_set;
      }
      return;
    case "survey":
      if (!isName(typeAt(properties, PropertyShift.SurveyId))) {
        fail(verdict, "missing_survey_id", "properties.$survey_id must be given");
      }
      return;
    case "identify":
      if (isNothing(typeAt(fields, FieldShift.Set)) && isNothing(typeAt(properties, PropertyShift.Set))) {
        verdict.warnings |= warningBit.missing_set;
      }
      return;
    case "pageview":
      if (!isName(typeAt(more, MoreShift.CurrentUrl))) verdict.warnings |= warningBit.missing_current_url;
      return;
    case "screen":
      if (!isName(typeAt(more, MoreShift.ScreenName))) verdict.warnings |= warningBit.missing_screen_name;
      return;
    case "custom":
      return;
  }
}

function judgePersonProfile(type: TokenType, verdict: Verdict): void {
  verdict.personProfile = type !== TokenType.False;
  if (type !== TokenType.True && type !== TokenType.False && !isNothing(type)) {
    verdict.warnings |= warningBit.invalid_person_profile;
  }
}

function judgeTimestamp({ body, table, row }: ItemView, type: TokenType, historical: boolean, verdict: Verdict): void {
  if (isNothing(type)) {
    verdict.timestamp = "received";
    if (historical) verdict.warnings |= warningBit.missing_timestamp;
    return;
  }
  const start = table[row + Row.TimestampStart]!;
  const end = table[row + Row.TimestampEnd]!;
  if (type === TokenType.PlainString && isStoredTimestamp(body, start + 1, end - 1)) {
    verdict.timestamp = "sent";
    return;
  }
  const readable = isString(type) && end - start <= escapedTimestampBytesMax;
  const stored = readable ? storedTimestamp(JSON.parse(body.toString("utf8", start, end)) as string) : undefined;
  if (stored === undefined) {
    verdict.timestamp = "received";
    verdict.warnings |= warningBit.invalid_timestamp;
    return;
  }
  verdict.timestamp = "converted";
  verdict.timestampText = stored;
}

function judgeUuid({ body, table, row }: ItemView, type: TokenType, verdict: Verdict): void {
  verdict.uuid = "new";
  if (isNothing(type)) return;
  const start = table[row + Row.UuidStart]!;
  const end = table[row + Row.UuidEnd]!;
  if (type === TokenType.PlainString) {
    const form = uuidForm(body, start + 1, end - 1);
    if (form === UuidForm.Lower) verdict.uuid = "sent";
    else if (form === UuidForm.Upper) convertUuid(body.toString("latin1", start + 1, end - 1), verdict);
    else verdict.warnings |= warningBit.invalid_uuid;
  } else if (type === TokenType.EscapedString && end - start <= escapedUuidBytesMax) {
    const sent = Buffer.from(JSON.parse(body.toString("utf8", start, end)) as string);
    if (uuidForm(sent, 0, sent.length) === UuidForm.None) verdict.warnings |= warningBit.invalid_uuid;
    else convertUuid(sent.toString("latin1"), verdict);
  } else {
    verdict.warnings |= warningBit.invalid_uuid;
  }
}

function convertUuid(sent: string, verdict: Verdict): void {
  verdict.uuid = "converted";
  verdict.uuidText = sent.toLowerCase();
}
