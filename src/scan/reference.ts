// The reference scanner: the table of table.ts in plain JavaScript. It is what the addon is tested against, and what
// stands in where the addon is not built. It must share nothing with the addon but the layout.

import { normaliseText } from "./reference-normalise.ts";
import { findUtf8Fault, type JsonChild, type JsonNode, type JsonTree, parseTree } from "./reference-parse.ts";
import { countMalformed, repairMalformed } from "./reference-utf8.ts";
import {
  type BackgroundScanner,
  depthMax,
  FieldShift,
  Header,
  ItemFlag,
  MoreShift,
  malformedMax,
  NotNormal,
  PropertyShift,
  Row,
  rowsMax,
  ScanStatus,
  TokenType,
} from "./table.ts";

/** The root and its batch. */
const batchDepth = 2;

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

const propertyPlaces = new Map<string, { readonly word: number; readonly shift: number }>([
  ["alias", { word: Row.PropertyTypes, shift: PropertyShift.Alias }],
  ["$group_type", { word: Row.PropertyTypes, shift: PropertyShift.GroupType }],
  ["$group_key", { word: Row.PropertyTypes, shift: PropertyShift.GroupKey }],
  ["$survey_id", { word: Row.PropertyTypes, shift: PropertyShift.SurveyId }],
  ["$set", { word: Row.PropertyTypes, shift: PropertyShift.Set }],
  ["$group_set", { word: Row.PropertyTypes, shift: PropertyShift.GroupSet }],
  ["$groups", { word: Row.PropertyTypes, shift: PropertyShift.Groups }],
  ["$process_person_profile", { word: Row.PropertyTypes, shift: PropertyShift.ProcessPersonProfile }],
  ["$current_url", { word: Row.MoreTypes, shift: MoreShift.CurrentUrl }],
  ["$screen_name", { word: Row.MoreTypes, shift: MoreShift.ScreenName }],
  ["distinct_id", { word: Row.FieldTypes, shift: FieldShift.PropertiesDistinctId }],
]);

const envelopePlaces = new Map<string, { readonly type: number; readonly start?: number }>([
  ["batch", { type: Header.BatchType }],
  ["api_key", { type: Header.ApiKeyType, start: Header.ApiKeyStart }],
  ["token", { type: Header.AltKeyType, start: Header.AltKeyStart }],
  ["historical_migration", { type: Header.HistoricalType }],
  ["sent_at", { type: Header.SentAtType, start: Header.SentAtStart }],
]);

function hasEscapedKey(node: JsonNode): boolean {
  return node.children.some(({ key }) => key.includes("\\"));
}

/** The member of each key that JSON.parse would keep: the last. Keys with escapes stand under another name. */
function lastOfEachKey(node: JsonNode): Map<string, JsonNode> {
  return new Map(node.children.map(({ key, node: value }) => [key, value]));
}

function hasDuplicateProperty(properties: JsonNode): boolean {
  const reserved = properties.children.map(({ key }) => key).filter((key) => propertyPlaces.has(key));
  return new Set(reserved).size < reserved.length;
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

function fillProperties(row: Uint32Array, properties: JsonNode): number {
  for (const [key, value] of lastOfEachKey(properties)) {
    const place = propertyPlaces.get(key);
    if (place === undefined) continue;
    row[place.word]! |= value.type << place.shift;
    if (key === "distinct_id") row.set([value.start, value.end], Row.PropertiesDistinctIdStart);
  }
  return (
    (hasEscapedKey(properties) ? ItemFlag.EscapedKey : 0) |
    (hasDuplicateProperty(properties) ? ItemFlag.DuplicateKey : 0)
  );
}

/** `depth`: how many containers the item stands in. */
function isTooDeep({ deep }: JsonTree, item: JsonNode, depth: number): boolean {
  return deep.some((at) => at.offset >= item.start && at.offset < item.end && at.depth - depth > depthMax);
}

function fillRow(row: Uint32Array, item: JsonNode, tree: JsonTree, depth: number): void {
  row.fill(0);
  row[Row.ItemStart] = item.start;
  row[Row.ItemEnd] = item.end;
  let flags = hasOffsetWithin(tree.replaced, item) ? ItemFlag.ReplacedCharacter : 0;
  if (hasOffsetWithin(tree.longNumbers, item)) flags |= ItemFlag.LongNumber;
  if (isTooDeep(tree, item, depth)) flags |= ItemFlag.TooDeep;
  if (item.type === TokenType.Object) {
    if (hasEscapedKey(item)) flags |= ItemFlag.EscapedKey;
    for (const [key, value] of lastOfEachKey(item)) {
      const place = fieldPlaces.get(key);
      if (place === undefined) continue;
      row.set([value.start, value.end], place.start);
      row[Row.FieldTypes]! |= value.type << place.shift;
      if (key === "properties" && value.type === TokenType.Object) flags |= fillProperties(row, value);
    }
  }
  row[Row.MoreTypes]! |= (item.type << MoreShift.Item) | (flags << MoreShift.Flags);
}

/** Fills the header and answers with the items: those of the batch, or the one event the root is. */
function fillHeader(header: Uint32Array, root: JsonNode): readonly JsonChild[] {
  header[Header.RootType] = root.type;
  if (root.type !== TokenType.Object) return [];
  // The envelope's keys are known however they are written.
  const members = new Map(root.children.map(({ key, node }) => [JSON.parse(`"${key}"`) as string, node]));
  for (const [key, place] of envelopePlaces) {
    const value = members.get(key);
    if (value === undefined) continue;
    header[place.type] = value.type;
    if (place.start !== undefined) header.set([value.start, value.end], place.start);
  }
  const batch = members.get("batch");
  const items = batch === undefined ? [{ key: "", node: root }] : batch.type === TokenType.Array ? batch.children : [];
  header[Header.ItemCount] = items.length;
  return items;
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
    return true;
  } catch {
    return false;
  }
}

function normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number {
  const text = normaliseText(body.toString("utf8", start, end));
  return text === undefined ? NotNormal.NotJson : target.write(text, at);
}

function replaceLineBreaks(body: Buffer): void {
  for (let at = 0; at < body.length; at += 1) {
    if (body[at] === 0x0a || body[at] === 0x0d) body[at] = 0x20;
  }
}

/**
 * A scanner without the addon, many times slower, with the same results. It has no background: what is asked of it there it does
 * at once, on the event loop, and answers with a promise that is settled.
 * @param rows Rows its table holds; more events than that in a body come by `scanMore`.
 */
export function createReferenceScanner(rows: number = rowsMax): BackgroundScanner {
  const table = new Uint32Array(Header.Words + rows * Row.Words);
  const header = table.subarray(0, Header.Words);
  let items: readonly JsonChild[] = [];
  let tree: JsonTree | undefined;
  let itemsEnd = 0;
  let delivered = 0;
  let lastLength: number | undefined;

  function fillRows(): void {
    header[Header.FirstItem] = delivered;
    const count = Math.min(rows, itemsEnd - delivered);
    header[Header.RowCount] = count;
    for (let index = 0; index < count; index += 1) {
      const start = Header.Words + index * Row.Words;
      const depth = header[Header.BatchType] === TokenType.Absent ? 0 : batchDepth;
      fillRow(table.subarray(start, start + Row.Words), items[delivered + index]!.node, tree!, depth);
    }
    delivered += count;
    // The tree of a large body is kept only while rows of it are left.
    if (delivered === itemsEnd) {
      items = [];
      tree = undefined;
    }
  }

  function scan(body: Buffer): ScanStatus {
    header.fill(0);
    items = [];
    itemsEnd = 0;
    delivered = 0;
    lastLength = body.length;
    const utf8Fault = findUtf8Fault(body);
    if (utf8Fault !== undefined) {
      header[Header.ErrorOffset] = utf8Fault;
      const text = body.toString("latin1").replace(/^[ \t\n\r]+|[ \t\n\r]+$/g, "");
      if (text.startsWith("{") && text.endsWith("}")) {
        const { malformed, bytes } = countMalformed(body, malformedMax);
        header[Header.Malformed] = malformed;
        header[Header.RepairedBytes] = bytes;
      }
      return ScanStatus.InvalidUtf8;
    }
    const parsed = parseTree(body);
    if ((typeof parsed === "object") !== isJson(body)) {
      throw new Error("Scanning a body: the reference scanner and JSON.parse disagree on whether it is JSON");
    }
    if (typeof parsed === "number") {
      if (/^[ \t\n\r]*$/.test(body.toString("latin1"))) return ScanStatus.Empty;
      header[Header.ErrorOffset] = parsed;
      return ScanStatus.InvalidJson;
    }
    tree = parsed;
    items = fillHeader(header, tree.root);
    itemsEnd = items.length;
    fillRows();
    replaceLineBreaks(body);
    return ScanStatus.Ok;
  }

  function scanMore(body: Buffer): void {
    if (body.length !== lastLength) throw new Error("scanMore takes the body of the last scan: another length");
    fillRows();
  }

  return {
    table,
    scan,
    scanMore,
    scanInBackground: async (body) => scan(body),
    scanMoreInBackground: async (body) => scanMore(body),
    normalise,
    repair: repairMalformed,
  };
}
