// Checks the members of `properties` that the gateway uses. An empty list is replaced by `{}` if
// the member must be an object. Other wrong members are overwritten with spaces, and `replaced`
// stores their values.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { distinctIdCharactersMax, distinctIdText } from "./distinct-id.ts";
import { type ItemView, isNothing, typeAt } from "./item-view.ts";
import { JsonMembers } from "./json-members.ts";
import { FieldShift, Row, TokenType } from "./table.ts";
import { keepReplaced, type Verdict, warningBit } from "./verdict.ts";

const objectNames = ["$set", "$set_once", "$group_set", "$groups"] as const;
const listNames = ["$unset", "$group_unset"] as const;
const idNames = ["alias", "$anon_distinct_id", "$group_type", "$group_key"] as const;
type IdName = (typeof idNames)[number];

const objects: ReadonlySet<string> = new Set(objectNames);
const lists: ReadonlySet<string> = new Set(listNames);
const ids: ReadonlySet<string> = new Set(idNames);
const nameBytesMax = Math.max(
  ...[...objectNames, ...listNames, ...idNames].map(({ length }) => length),
);

const members = new JsonMembers(Buffer.alloc(0));
const groups = new JsonMembers(Buffer.alloc(0));
const groupsName = Buffer.from('"$groups"');

export function repairProperties(
  { body, table, row }: ItemView,
  verdict: Verdict,
): ReadonlySet<IdName> {
  const found = new Set<IdName>();
  if (typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties) !== TokenType.Object)
    return found;
  members.begin(body, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!);
  while (members.next()) {
    const { nameStart, nameEnd, valueStart, valueEnd, valueType: type } = members;
    if (nameEnd - nameStart > nameBytesMax || isNothing(type)) continue;
    const name = body.toString("latin1", nameStart, nameEnd);
    if (ids.has(name)) {
      if (hasIdText(body, valueStart, valueEnd, type, verdict)) found.add(name as IdName);
    } else if (name === "$groups" && type === TokenType.Object) {
      checkGroups(body, valueStart, valueEnd, verdict);
    } else if (objects.has(name) && type !== TokenType.Object) {
      if (isEmptyArray(body, valueStart, valueEnd)) {
        body[valueStart] = Ascii.OpenBrace;
        body[valueEnd - 1] = Ascii.CloseBrace;
      } else {
        keepReplaced(verdict, name, body.subarray(valueStart, valueEnd));
        removeMember(body, nameStart - 1, valueEnd);
        verdict.warnings |= warningBit.invalid_object;
      }
    } else if (lists.has(name) && type !== TokenType.Object && type !== TokenType.Array) {
      keepReplaced(verdict, name, body.subarray(valueStart, valueEnd));
      removeMember(body, nameStart - 1, valueEnd);
      verdict.warnings |= warningBit.invalid_unset;
    }
  }
  return found;
}

function hasIdText(
  body: Buffer,
  start: number,
  end: number,
  type: TokenType,
  verdict: Verdict,
): boolean {
  if (isNothing(type) || type === TokenType.EmptyString) return false;
  const { text, cut } = distinctIdText(body, start, end, type);
  if (cut) verdict.warnings |= warningBit.id_shortened;
  return text !== "";
}

function checkGroups(body: Buffer, start: number, end: number, verdict: Verdict): void {
  groups.begin(body, start, end);
  while (groups.next()) {
    const { nameStart, nameEnd, valueStart, valueEnd } = groups;
    const nameType = groups.nameHasEscape ? TokenType.EscapedString : TokenType.PlainString;
    if (nameEnd > nameStart) hasIdText(body, nameStart - 1, nameEnd + 1, nameType, verdict);
    hasIdText(body, valueStart, valueEnd, groups.valueType, verdict);
  }
}

export function mayHaveLongGroups({ body, table, row }: ItemView): boolean {
  const propertiesEnd = table[row + Row.PropertiesEnd]!;
  const first = body.indexOf(groupsName, table[row + Row.PropertiesStart]!);
  const second = body.indexOf(groupsName, first + groupsName.length);
  if (second >= 0 && second < propertiesEnd) return true;
  const start = body.indexOf(Ascii.OpenBrace, first + groupsName.length);
  let depth = 0;
  let inString = false;
  for (let at = start; at <= start + distinctIdCharactersMax; at++) {
    const byte = body[at];
    if (inString) {
      if (byte === Ascii.Backslash) at++;
      else if (byte === Ascii.Quote) inString = false;
    } else if (byte === Ascii.Quote) inString = true;
    else if (byte === Ascii.OpenBrace) depth++;
    else if (byte === Ascii.CloseBrace && --depth === 0) return false;
  }
  return true;
}

export function isEmptyArray(body: Buffer, start: number, end: number): boolean {
  return body[start] === Ascii.OpenBracket && isBlank(body, start + 1, end - 1);
}

export function isEmptyObject(body: Buffer, start: number, end: number): boolean {
  return body[start] === Ascii.OpenBrace && isBlank(body, start + 1, end - 1);
}

function isBlank(body: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && body[at]! <= Ascii.Space) at++;
  return at === end;
}

function removeMember(body: Buffer, start: number, end: number): void {
  let after = end;
  while (body[after]! <= Ascii.Space) after++;
  if (body[after] === Ascii.Comma) {
    body.fill(Ascii.Space, start, after + 1);
    return;
  }
  let before = start - 1;
  while (body[before]! <= Ascii.Space) before--;
  body.fill(Ascii.Space, body[before] === Ascii.Comma ? before : start, end);
}
