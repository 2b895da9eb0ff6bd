// Reads the stored records of a frame. All lines are scanned together as one batch. If the batch is
// invalid, each line is scanned separately, so that an invalid line does not affect other lines.

import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { Ascii, isJsonSpace } from "../platform/base/ascii.ts";
import { isProjectId } from "../platform/base/forms.ts";
import { Part, type RecordField, recordFields } from "./fields.ts";
import { isString, typeAt } from "./item-view.ts";
import { JsonMembers } from "./json-members.ts";
import { Line, LineFlag, LineShift, RecordView } from "./lines.ts";
import { createNativeScanner, loadAddon } from "./native.ts";
import { Header, MoreShift, Row, type Scanner, ScanStatus, TokenType, tableRows } from "./table.ts";
import { timestampTokenMs } from "./timestamp.ts";
import { kinds } from "./verdict.ts";

export const frameRows = 1_024;

const pauseMask = 63;
export const linesToPause = pauseMask + 1;

const beforeLines = Buffer.from('{"batch":[');
const afterLines = Buffer.from("]}");
const wrapBytes = beforeLines.length + afterLines.length;
const retainedBytesMax = 2_097_152;
const roomMin = 65_536;

interface LineError {
  readonly reason: "not_json" | "not_a_record";
  readonly detail: string;
}

interface RecordVisitor {
  record(record: RecordView): void;
  /**
   * Called for a line that cannot be read. The line is at [start, end) in the data of the frame,
   * without its line feed.
   */
  unreadable(fault: LineError, line: number, start: number, end: number): void;
}

interface ScannedText {
  readonly body: Buffer;
  readonly view: DataView;
  readonly shift: number;
}

export class RecordReader {
  /**
   * The key for the hashes of events. Each reader has its own key, so hashes of different readers
   * cannot be compared.
   */
  readonly uuidKey = randomFillSync(new Uint32Array(2));
  readonly #scanner: Scanner;
  readonly #joinLines = loadAddon().joinLines;
  readonly #readLines = loadAddon().readLines;
  readonly #members = new MemberWords();
  readonly #record: RecordView;
  readonly #place = new Uint32Array(5);
  #text: ScannedText = scannedText(Buffer.alloc(0), 0);
  #textEnd = 0;
  #ends = new Uint32Array(frameRows);
  #lines = 0;
  #projectId = "";

  /** No other code may use `scanner`. */
  constructor(scanner: Scanner = createNativeScanner(frameRows)) {
    this.#scanner = scanner;
    this.#record = new RecordView(tableRows(scanner.table));
    this.#place.set(this.uuidKey, 3);
  }

  /**
   * Reads the records of a frame. Blank lines are skipped, but they count in line numbers. The
   * generator pauses after every 64 lines. The caller must not begin another frame before this one
   * has ended. Throws if the scanner has no memory.
   */
  *read(data: Uint8Array, visitor: RecordVisitor): Generator<void, void> {
    this.#takeText(data);
    const read = this.#lines === 0 ? 0 : yield* this.#readTogether(visitor);
    for (let line = read; line < this.#lines; line++) {
      this.#readAlone(visitor, line);
      if ((line & pauseMask) === pauseMask) yield;
    }
    if (this.#text.body.length > retainedBytesMax) this.#setText(Buffer.alloc(0));
  }

  #takeText(data: Uint8Array): void {
    const { length } = data;
    this.#makeRoom(length + wrapBytes);
    const { body } = this.#text;
    const start = beforeLines.copy(body);
    body.set(data, start);
    const isClosed = length > 0 && data[length - 1] === Ascii.LineFeed;
    const end = start + (isClosed ? length - 1 : length);
    afterLines.copy(body, end);
    this.#textEnd = end + afterLines.length;
    this.#lines = length === 0 ? 0 : this.#joinLines(body, start, end, this.#ends);
    if (this.#lines <= this.#ends.length) return;
    this.#ends = new Uint32Array(2 * this.#lines);
    body.set(data, start);
    afterLines.copy(body, end);
    this.#joinLines(body, start, end, this.#ends);
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#text.body.length) return;
    let room = roomMin;
    while (room < bytes) room *= 2;
    this.#setText(Buffer.allocUnsafeSlow(room));
  }

  #setText(body: Buffer): void {
    this.#text = scannedText(body, -beforeLines.length);
  }

  #startOf(line: number): number {
    return line === 0 ? beforeLines.length : this.#ends[line - 1]! + 1;
  }

  *#readTogether(visitor: RecordVisitor): Generator<void, number> {
    const scanner = this.#scanner;
    const { table } = scanner;
    const batch = this.#text.body.subarray(0, this.#textEnd);
    if (!isScanned(scanner.scan(batch))) return 0;
    let line = 0;
    for (;;) {
      const rowCount = table[Header.RowCount]!;
      const read = this.#readWords(this.#text, { ends: this.#ends, lines: this.#lines, line });
      for (let index = 0; index < read; index++) {
        const [start, end] = [this.#startOf(line), this.#ends[line]!];
        if (!this.#readRow(visitor, { text: this.#text, index, line, start, end })) return line;
        if ((line & pauseMask) === pauseMask) yield;
        line++;
      }
      if (read < rowCount || line >= table[Header.ItemCount]!) return line;
      scanner.scanMore(batch);
    }
  }

  #readWords(
    { body, view, shift }: ScannedText,
    { ends, lines, line }: { ends: Uint32Array; lines: number; line: number },
  ): number {
    const record = this.#record;
    record.body = body;
    record.view = view;
    record.shift = shift;
    const place = this.#place;
    place[0] = lines;
    place[1] = line;
    place[2] = line === 0 ? beforeLines.length : ends[line - 1]! + 1;
    return this.#readLines(body, this.#scanner.table, ends, place, record.words);
  }

  #readAlone(visitor: RecordVisitor, line: number): void {
    const { body } = this.#text;
    const [start, end] = [this.#startOf(line), this.#ends[line]!];
    const next = body.readUInt16LE(end);
    const from = start - beforeLines.length;
    beforeLines.copy(body, from);
    afterLines.copy(body, end);
    const batch = body.subarray(from, end + afterLines.length);
    const text = scannedText(batch, from - beforeLines.length);
    const place = { text, index: 0, line, start: beforeLines.length, end: end - from };
    const isOne =
      isScanned(this.#scanner.scan(batch)) && this.#scanner.table[Header.ItemCount] === 1;
    if (isOne) this.#readWords(text, { ends: Uint32Array.of(place.end), lines: 1, line: 0 });
    if (!isOne || !this.#readRow(visitor, place)) {
      const fault = this.#faultOf(batch.subarray(place.start, place.end));
      const at = start - beforeLines.length;
      if (fault !== undefined) visitor.unreadable(fault, line, at, at + end - start);
    }
    body.writeUInt16LE(next, end);
  }

  #faultOf(line: Buffer): LineError | undefined {
    const status = this.#scanner.scan(line);
    if (status === ScanStatus.Empty) return undefined;
    const what = status === ScanStatus.InvalidUtf8 ? "UTF-8" : "JSON";
    const at = this.#scanner.table[Header.ErrorOffset]!;
    return { reason: "not_json", detail: `it is not ${what} from byte ${at} on` };
  }

  #readRow(visitor: RecordVisitor, { text, index, line, start, end }: RowPlace): boolean {
    const record = this.#record;
    const { table } = this.#scanner;
    record.at = index * Line.Words;
    const isWritten = record.isWritten;
    const row = Header.Words + index * Row.Words;
    const itemStart = table[row + Row.ItemStart]!;
    const itemEnd = table[row + Row.ItemEnd]!;
    if (!isWritten && !isWhole(text.body, { start, end, itemStart, itemEnd })) return false;
    record.line = line;
    record.start = start + text.shift;
    record.end = end + text.shift;
    if (isWritten) {
      record.profileType = TokenType.True;
      if (!record.has(LineFlag.SameProject)) this.#readProject();
      record.projectId = this.#projectId;
    } else if (typeAt(table[row + Row.MoreTypes]!, MoreShift.Item) !== TokenType.Object) {
      const fault = { reason: "not_a_record", detail: "it is not an object" } as const;
      visitor.unreadable(fault, line, record.start, record.end);
      return true;
    } else this.#members.fill(record, itemStart, itemEnd);
    visitor.record(record);
    return true;
  }

  #readProject(): void {
    const { body } = this.#record;
    const [start, end] = [this.#record.startOf(Part.ProjectId), this.#record.endOf(Part.ProjectId)];
    const text = body.toString("latin1", start + 1, end - 1);
    if (text !== this.#projectId) this.#projectId = text;
  }
}

interface RowPlace {
  readonly text: ScannedText;
  readonly index: number;
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

function scannedText(body: Buffer, shift: number): ScannedText {
  return { body, view: new DataView(body.buffer, body.byteOffset, body.length), shift };
}

function isScanned(status: ScanStatus): boolean {
  if (status === ScanStatus.OutOfMemory) throw new Error("cannot scan a frame: no memory");
  return status === ScanStatus.Ok;
}

interface ItemPlace {
  readonly start: number;
  readonly end: number;
  readonly itemStart: number;
  readonly itemEnd: number;
}

function isWhole(body: Buffer, { itemStart, itemEnd, ...line }: ItemPlace): boolean {
  let { start, end } = line;
  if (itemStart < start || itemEnd > end) return false;
  while (start < itemStart && isJsonSpace(body[start])) start++;
  while (end > itemEnd && isJsonSpace(body[end - 1])) end--;
  return itemStart === start && itemEnd === end;
}

const nameBytesMax = 6 * 16;
const wordBytesMax = 6 * 64 + 2;

const parts: ReadonlyMap<string, Part> = new Map(
  Object.entries(recordFields).flatMap(([name, { part }]: [string, RecordField]) =>
    part === undefined ? [] : [[name, part] as const],
  ),
);
const nestedParts: ReadonlyMap<string, Part> = new Map<string, Part>([
  ["$set", Part.NestedSet],
  ["$set_once", Part.NestedSetOnce],
  ["$unset", Part.NestedUnset],
  ["$groups", Part.Groups],
]);
const times: ReadonlyMap<string, number> = new Map([
  ["timestamp", Line.Timestamp],
  ["timestamp_sent", Line.TimestampSent],
  ["received_at", Line.ReceivedAt],
  ["sent_at", Line.SentAt],
]);

/**
 * Reads records that other programs have written. Their members may be in any order and spelling.
 * It writes the same words as the addon.
 */
class MemberWords {
  readonly #members = new JsonMembers(Buffer.alloc(0));

  fill(record: RecordView, start: number, end: number): void {
    const { words, at } = record;
    words.fill(0, at, at + Line.Words);
    for (const word of times.values()) record.setMs(word, Number.NaN);
    record.profileType = TokenType.Absent as TokenType;
    let flags: number = LineFlag.HasWrites;
    this.#walk(record, { start, end, parts }, (name, members) => {
      const { valueStart, valueEnd, valueType: type } = members;
      const time = times.get(name);
      if (time !== undefined)
        record.setMs(
          time,
          isString(type) ? timestampTokenMs(record.body, valueStart, valueEnd) : Number.NaN,
        );
      else if (name === "person_profile") record.profileType = type;
      else if (name === "historical")
        flags =
          type === TokenType.True ? flags | LineFlag.Historical : flags & ~LineFlag.Historical;
    });
    if (record.profileType !== TokenType.False) flags |= LineFlag.PersonProfile;
    const known = (kinds as readonly string[]).indexOf(shortText(record, Part.Kind));
    flags |= (known < 0 ? kinds.length : known) << LineShift.Kind;
    words[at + Line.Flags] = flags;
    const project = shortText(record, Part.ProjectId);
    record.projectId = isProjectId(project) ? project : "";
    if (record.type(Part.Properties) !== TokenType.Object) return;
    const properties = {
      start: record.startOf(Part.Properties),
      end: record.endOf(Part.Properties),
    };
    this.#walk(record, { ...properties, parts: nestedParts }, () => {});
  }

  #walk(
    { body, words, at }: RecordView,
    object: { start: number; end: number; parts: ReadonlyMap<string, Part> },
    other: (name: string, members: JsonMembers) => void,
  ): void {
    const members = this.#members;
    members.begin(body, object.start, object.end);
    while (members.next()) {
      if (members.nameEnd - members.nameStart > nameBytesMax) continue;
      const written = body.toString("utf8", members.nameStart, members.nameEnd);
      const name = members.nameHasEscape ? (JSON.parse(`"${written}"`) as string) : written;
      const part = object.parts.get(name);
      if (part === undefined) {
        other(name, members);
        continue;
      }
      const types = at + Line.Types + (part >> 3);
      const shift = 4 * (part & 7);
      words[types] = (words[types]! & ~(15 << shift)) | (members.valueType << shift);
      words[at + Line.Parts + 2 * part] = members.valueStart;
      words[at + Line.Parts + 2 * part + 1] = members.valueEnd;
    }
  }
}

function shortText(record: RecordView, part: Part): string {
  const isShort = record.endOf(part) - record.startOf(part) <= wordBytesMax;
  return isString(record.type(part)) && isShort ? record.text(part) : "";
}
