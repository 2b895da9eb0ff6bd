// Writes the table entries of an item for the reference scanner. It must not share code with the
// addon.

import {
  depthMax,
  Extra,
  ExtraShift,
  FieldShift,
  ItemFlag,
  MoreShift,
  PropertyShift,
  Row,
  TokenType,
} from "../../../src/records/table.ts";
import { membersByName } from "./keys.ts";
import type { JsonNode, JsonTree } from "./parse.ts";

interface FieldPlace {
  readonly start: number;
  readonly shift: number;
}

const fieldPlaces = new Map<string, FieldPlace>([
  ["event", { start: Row.EventStart, shift: FieldShift.Event }],
  ["distinct_id", { start: Row.DistinctIdStart, shift: FieldShift.DistinctId }],
  ["timestamp", { start: Row.TimestampStart, shift: FieldShift.Timestamp }],
  ["uuid", { start: Row.UuidStart, shift: FieldShift.Uuid }],
  ["properties", { start: Row.PropertiesStart, shift: FieldShift.Properties }],
  ["$set", { start: Row.SetStart, shift: FieldShift.Set }],
  ["$set_once", { start: Row.SetOnceStart, shift: FieldShift.SetOnce }],
]);

const extraFieldPlaces = new Map<string, FieldPlace>([
  ["$unset", { start: Extra.UnsetStart, shift: ExtraShift.Unset }],
  ["offset", { start: Extra.OffsetStart, shift: ExtraShift.Offset }],
  ["session_id", { start: Extra.SessionIdStart, shift: ExtraShift.SessionId }],
  ["window_id", { start: Extra.WindowIdStart, shift: ExtraShift.WindowId }],
  ["options", { start: Extra.OptionsStart, shift: ExtraShift.Options }],
]);

const extraPropertyPlaces = new Map<string, FieldPlace>([
  ["$set", { start: Extra.PropertiesSetStart, shift: ExtraShift.PropertiesSet }],
  ["$set_once", { start: Extra.PropertiesSetOnceStart, shift: ExtraShift.PropertiesSetOnce }],
  ["$unset", { start: Extra.PropertiesUnsetStart, shift: ExtraShift.PropertiesUnset }],
]);

const propertyShifts = new Map<string, number>([
  ["$survey_id", PropertyShift.SurveyId],
  ["$set", PropertyShift.Set],
  ["$group_set", PropertyShift.GroupSet],
  ["$groups", PropertyShift.Groups],
  ["$process_person_profile", PropertyShift.ProcessPersonProfile],
  ["$current_url", PropertyShift.CurrentUrl],
  ["$screen_name", PropertyShift.ScreenName],
  ["$ignore_sent_at", PropertyShift.IgnoreSentAt],
]);

function hasEscapedKey(node: JsonNode): boolean {
  return escapedKeys(node) > 0;
}

/**
 * Returns the last value of each key, as JSON.parse does. Keys are compared as written, so a key
 * with escapes is a different name.
 */
function lastOfEachKey(node: JsonNode): Map<string, JsonNode> {
  return new Map(node.children.map(({ key, node: value }) => [key, value]));
}

function escapedKeys(node: JsonNode): number {
  return node.children.filter(({ key }) => key.includes("\\")).length;
}

function hasDoubledInnerKey(item: JsonNode, offsets: readonly number[]): boolean {
  const all = offsets.filter((offset) => offset > item.start && offset < item.end).length;
  if (item.type !== TokenType.Object) return all > 0;
  const own = item.children.map(({ key }) => key).filter((key) => !key.includes("\\"));
  return all > own.length - new Set(own).size;
}

function hasEscapedInnerKey(item: JsonNode, offsets: readonly number[]): boolean {
  const all = offsets.filter((offset) => offset > item.start && offset < item.end).length;
  if (item.type !== TokenType.Object) return all > 0;
  const inProperties = item.children
    .filter(({ key, node }) => key === "properties" && node.type === TokenType.Object)
    .map(({ node }) => escapedKeys(node));
  return all > [escapedKeys(item), ...inProperties].reduce((sum, count) => sum + count, 0);
}

function hasOffsetWithin(offsets: readonly number[], node: JsonNode): boolean {
  let low = 0;
  let high = offsets.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle]! < node.start) low = middle + 1;
    else high = middle;
  }
  return low < offsets.length && offsets[low]! < node.end;
}

/** Returns `distinct_id`. If it is missing or null, returns `$distinct_id`. */
function distinctIdIn(members: ReadonlyMap<string, JsonNode>): JsonNode | undefined {
  const id = members.get("distinct_id");
  return id === undefined || id.type === TokenType.Null ? (members.get("$distinct_id") ?? id) : id;
}

function fieldIn(
  item: JsonNode,
  members: ReadonlyMap<string, JsonNode>,
  name: string,
): JsonNode | undefined {
  if (name === "distinct_id") return distinctIdIn(members);
  return name === "uuid" ? membersByName(item).get(name) : members.get(name);
}

interface ItemWords {
  readonly row: Uint32Array;
  readonly extra: Uint32Array;
}

function fillExtra(
  { extra }: ItemWords,
  members: ReadonlyMap<string, JsonNode>,
  places: ReadonlyMap<string, FieldPlace>,
): void {
  for (const [name, { start, shift }] of places) {
    const value = members.get(name);
    if (value === undefined) continue;
    extra.set([value.start, value.end], start);
    extra[Extra.Types]! |= value.type << shift;
  }
}

function fillProperties(words: ItemWords, properties: JsonNode): number {
  const members = lastOfEachKey(properties);
  for (const [name, shift] of propertyShifts) {
    words.row[Row.PropertyTypes]! |= (members.get(name)?.type ?? TokenType.Absent) << shift;
  }
  fillField(words, distinctIdIn(members), {
    start: Row.PropertiesDistinctIdStart,
    shift: FieldShift.PropertiesDistinctId,
  });
  fillExtra(words, members, extraPropertyPlaces);
  return hasEscapedKey(properties) ? ItemFlag.EscapedKey : 0;
}

function fillField(
  { row }: ItemWords,
  value: JsonNode | undefined,
  { start, shift }: FieldPlace,
): void {
  if (value === undefined) return;
  row.set([value.start, value.end], start);
  row[Row.FieldTypes]! |= value.type << shift;
}

function isTooDeep({ deep }: JsonTree, item: JsonNode, depth: number): boolean {
  return deep.some(
    (at) => at.offset >= item.start && at.offset < item.end && at.depth - depth > depthMax,
  );
}

export function fillItem(words: ItemWords, item: JsonNode, tree: JsonTree, depth: number): void {
  const { row, extra } = words;
  row.fill(0);
  extra.fill(0);
  row[Row.ItemStart] = item.start;
  row[Row.ItemEnd] = item.end;
  let flags = hasOffsetWithin(tree.replaced, item) ? ItemFlag.ReplacedCharacter : 0;
  if (hasDoubledInnerKey(item, tree.doubledKeys)) flags |= ItemFlag.DuplicateKey;
  if (hasEscapedInnerKey(item, tree.escapedKeys)) flags |= ItemFlag.EscapedInnerKey;
  if (hasOffsetWithin(tree.longNumbers, item)) flags |= ItemFlag.LongNumber;
  if (isTooDeep(tree, item, depth)) flags |= ItemFlag.TooDeep;
  if (item.type === TokenType.Object) {
    if (hasEscapedKey(item)) flags |= ItemFlag.EscapedKey;
    const members = lastOfEachKey(item);
    for (const [name, place] of fieldPlaces) {
      fillField(words, fieldIn(item, members, name), place);
    }
    fillExtra(words, members, extraFieldPlaces);
    const properties = members.get("properties");
    if (properties?.type === TokenType.Object) flags |= fillProperties(words, properties);
  }
  const hasExtra = extra[Extra.Types] === 0 ? 0 : 1;
  row[Row.MoreTypes]! |=
    (item.type << MoreShift.Item) | (hasExtra << MoreShift.HasExtra) | (flags << MoreShift.Flags);
}
