// The rules for a single event. docs/reference/event-fields.md describes them. First come the rules
// that drop the event, then those that cause an error, then those that cause a warning.

import { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "./distinct-id.ts";
import { CustomEvent, isKind, isVisible, kindOf, NoKind } from "./event-name.ts";
import { judgeTime } from "./event-time.ts";
import {
  extraTypes,
  type ItemView,
  isName,
  isNothing,
  isObjectOrNothing,
  typeAt,
} from "./item-view.ts";
import { hasPersonFields } from "./person-fields.ts";
import { isEmptyArray, mayHaveLongGroups, repairProperties } from "./property-check.ts";
import {
  ExtraShift,
  FieldShift,
  hasExtra,
  MoreShift,
  PropertyShift,
  Row,
  TokenType,
} from "./table.ts";
import { stringBeginning, tokenBytesRead } from "./token-beginning.ts";
import { isBlankUuid, UuidForm, unescapedUuid, uuidForm } from "./uuid.ts";
import {
  Kind,
  keepReplaced,
  type RequestFacts,
  refuse,
  type Verdict,
  warningBit,
} from "./verdict.ts";

const identify = "$identify";

const objectFields =
  (0xf << FieldShift.Properties) | (0xf << FieldShift.Set) | (0xf << FieldShift.SetOnce);
const objectProperties =
  (0xf << PropertyShift.Set) | (0xf << PropertyShift.GroupSet) | (0xf << PropertyShift.Groups);
const propertiesAlone = TokenType.Object << FieldShift.Properties;

const traceIdName = Buffer.from('"$ai_trace_id"');
const exceptionListName = Buffer.from('"$exception_list"');

export function judgeItem(item: ItemView, request: RequestFacts, verdict: Verdict): void {
  const { table, row } = item;
  const fields = table[row + Row.FieldTypes]!;
  verdict.drop = undefined;
  verdict.error = undefined;
  verdict.warnings = 0;
  verdict.eventText = undefined;
  verdict.replaced = "";
  let kind = kindOf(item);
  if (kind === NoKind.Nameless && request.isEngage && isNamelessObject(item, fields)) {
    kind = Kind.Identify;
    verdict.eventText = identify;
  }
  if (kind === NoKind.Nameless) {
    verdict.drop = isObject(item) ? "no_event" : "not_an_object";
    return;
  }
  if (kind === NoKind.Performance) {
    verdict.drop = "removed";
    return;
  }
  verdict.kind = isKind(kind) ? kind : Kind.Custom;
  judgeDistinctId(item, fields, verdict);
  if (verdict.drop !== undefined) return;
  judgeObjects(item, verdict);
  if (verdict.error !== undefined) return;
  if (kind !== Kind.Custom) judgeSpecial(item, kind, verdict);
  judgePersonProfile(
    typeAt(table[row + Row.PropertyTypes]!, PropertyShift.ProcessPersonProfile),
    verdict,
  );
  verdict.hasPersonFields = hasPersonFields(item);
  judgeTime(item, request, verdict);
  judgeUuid(item, typeAt(fields, FieldShift.Uuid), verdict);
}

function isObject({ table, row }: ItemView): boolean {
  return typeAt(table[row + Row.MoreTypes]!, MoreShift.Item) === TokenType.Object;
}

function isNamelessObject(item: ItemView, fields: number): boolean {
  return isNothing(typeAt(fields, FieldShift.Event)) && isObject(item);
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
  // A string of 400 bytes has at most 400 characters. If it also has no escapes and begins with a
  // visible character, it can be stored unchanged.
  const short = end - start - 2 <= distinctIdCharactersMax;
  if (type === TokenType.PlainString && short && isVisible(body[start + 1]!)) return;
  const { text, cut } = distinctIdText(body, start, end, type);
  if (text === "") verdict.drop = "no_distinct_id";
  verdict.distinctIdText = text;
  verdict.distinctIdCut = cut;
  if (cut) {
    verdict.warnings |= warningBit.id_shortened;
    keepReplaced(verdict, "distinct_id", body.subarray(start, end));
  }
}

function judgeObjects(item: ItemView, verdict: Verdict): void {
  const { body, table, row } = item;
  const fields = table[row + Row.FieldTypes]!;
  const properties = table[row + Row.PropertyTypes]!;
  if (
    (fields & objectFields) === propertiesAlone &&
    (properties & objectProperties) === 0 &&
    !hasExtra(table, row)
  ) {
    return;
  }
  const propertiesType = typeAt(fields, FieldShift.Properties);
  const isEmptyList =
    propertiesType === TokenType.Array &&
    isEmptyArray(body, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!);
  if (!isObjectOrNothing(propertiesType) && !isEmptyList) {
    refuse(verdict, "invalid_properties", "properties must be an object");
    return;
  }
  judgeField(item, "$set", verdict);
  judgeField(item, "$set_once", verdict);
  const extras = extraTypes(item);
  if (
    !isObjectOrNothing(typeAt(properties, PropertyShift.Set)) ||
    !isObjectOrNothing(typeAt(properties, PropertyShift.GroupSet)) ||
    !isObjectOrNothing(typeAt(properties, PropertyShift.Groups)) ||
    !isObjectOrNothing(typeAt(extras, ExtraShift.PropertiesSetOnce)) ||
    !isListOrNothing(typeAt(extras, ExtraShift.PropertiesUnset)) ||
    (typeAt(properties, PropertyShift.Groups) === TokenType.Object && mayHaveLongGroups(item))
  ) {
    repairProperties(item, verdict);
  }
}

function judgeField(
  { body, table, row }: ItemView,
  name: "$set" | "$set_once",
  verdict: Verdict,
): void {
  const isSet = name === "$set";
  const type = typeAt(table[row + Row.FieldTypes]!, isSet ? FieldShift.Set : FieldShift.SetOnce);
  if (isObjectOrNothing(type)) return;
  const span = row + (isSet ? Row.SetStart : Row.SetOnceStart);
  const [start, end] = [table[span]!, table[span + 1]!];
  if (type === TokenType.Array && isEmptyArray(body, start, end)) return;
  verdict.warnings |= warningBit.invalid_object;
  keepReplaced(verdict, name, body.subarray(start, end));
}

function isListOrNothing(type: TokenType): boolean {
  return type === TokenType.Array || isObjectOrNothing(type);
}

/** Adds a warning if an event has no effect, because a value that its name requires is missing. */
function judgeSpecial(item: ItemView, kind: Kind | CustomEvent, verdict: Verdict): void {
  const { table, row } = item;
  const fields = table[row + Row.FieldTypes]!;
  const properties = table[row + Row.PropertyTypes]!;
  switch (kind) {
    case Kind.Alias:
    case CustomEvent.Merge:
      if (!repairProperties(item, verdict).has("alias"))
        verdict.warnings |= warningBit.missing_alias;
      return;
    case Kind.GroupIdentify: {
      const found = repairProperties(item, verdict);
      if (!found.has("$group_type") || !found.has("$group_key"))
        verdict.warnings |= warningBit.missing_group;
      else if (isNothing(typeAt(properties, PropertyShift.GroupSet)))
        verdict.warnings |= warningBit.missing_group_set;
      return;
    }
    case Kind.Survey:
      if (!isName(typeAt(properties, PropertyShift.SurveyId)))
        verdict.warnings |= warningBit.missing_survey_id;
      return;
    case CustomEvent.Exception:
      if (!isInProperties(item, exceptionListName))
        verdict.warnings |= warningBit.missing_exception_list;
      return;
    case CustomEvent.Ai:
      if (!isInProperties(item, traceIdName)) verdict.warnings |= warningBit.missing_trace_id;
      return;
    case Kind.Identify:
      if (
        table[row + Row.PropertiesEnd]! - table[row + Row.PropertiesStart]! >
        distinctIdCharactersMax
      )
        repairProperties(item, verdict);
      if (
        isNothing(typeAt(fields, FieldShift.Set)) &&
        isNothing(typeAt(properties, PropertyShift.Set))
      ) {
        verdict.warnings |= warningBit.missing_set;
      }
      return;
    case Kind.Pageview:
      if (!isName(typeAt(properties, PropertyShift.CurrentUrl)))
        verdict.warnings |= warningBit.missing_current_url;
      return;
    case Kind.Screen:
      if (!isName(typeAt(properties, PropertyShift.ScreenName)))
        verdict.warnings |= warningBit.missing_screen_name;
      return;
    case Kind.Set:
    case Kind.Custom:
      return;
    default:
      kind satisfies never;
  }
}

function isInProperties({ body, table, row }: ItemView, name: Buffer): boolean {
  const [start, end] = [table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!];
  return body.subarray(start, end).includes(name);
}

function judgePersonProfile(type: TokenType, verdict: Verdict): void {
  verdict.personProfile = type !== TokenType.False;
  if (type !== TokenType.True && type !== TokenType.False && !isNothing(type))
    verdict.warnings |= warningBit.invalid_person_profile;
}

function judgeUuid({ body, table, row }: ItemView, type: TokenType, verdict: Verdict): void {
  verdict.uuid = "new";
  // Some clients send "" for an event without a uuid.
  if (isNothing(type) || type === TokenType.EmptyString) return;
  const start = table[row + Row.UuidStart]!;
  const end = table[row + Row.UuidEnd]!;
  if (type === TokenType.PlainString) {
    const form = uuidForm(body, start + 1, end - 1);
    if (form !== UuidForm.None && !isBlankUuid(body, start + 1)) {
      if (form === UuidForm.Lower) verdict.uuid = "sent";
      else convertUuid(body.toString("latin1", start + 1, end - 1), verdict);
      return;
    }
  } else {
    const sent = type === TokenType.EscapedString ? unescapedUuid(body, start, end) : undefined;
    if (sent !== undefined && !isBlankUuid(sent, 0)) {
      convertUuid(sent.toString("latin1"), verdict);
      return;
    }
  }
  verdict.warnings |= warningBit.invalid_uuid;
  keepReplaced(verdict, "uuid", body.subarray(start, end));
}

function convertUuid(sent: string, verdict: Verdict): void {
  verdict.uuid = "converted";
  verdict.uuidText = sent.toLowerCase();
}

/** The maximum number of code points, the same as in PostHog. */
export const eventNameCharactersMax = 200;

export function judgeLengths(item: ItemView, verdict: Verdict): void {
  if (verdict.distinctIdText !== undefined && verdict.distinctIdCut) {
    const detail = `A distinct id may have ${distinctIdCharactersMax} characters`;
    refuse(verdict, "distinct_id_too_long", detail);
  } else if (isNameTooLong(item)) {
    const detail = `The name of an event may have ${eventNameCharactersMax} characters`;
    refuse(verdict, "event_name_too_long", detail);
  }
}

function isNameTooLong({ body, table, row }: ItemView): boolean {
  const [start, end] = [table[row + Row.EventStart]!, table[row + Row.EventEnd]!];
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
  if (type === TokenType.Absent || end - start - 2 <= eventNameCharactersMax) return false;
  if (end - start > tokenBytesRead) return true;
  let characters = 0;
  for (const _ of stringBeginning(body, start, end)) characters++;
  return characters > eventNameCharactersMax;
}
