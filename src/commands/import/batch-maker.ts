// Creates a batch from lines. If a line is already an event, its bytes are copied. Other lines are
// parsed and converted.

import { Buffer, isUtf8 } from "node:buffer";
import { warningTable } from "../../platform/base/warnings.ts";
import { extraTypes, typeAt } from "../../records/item-view.ts";
import {
  ExtraShift,
  FieldShift,
  Header,
  MoreShift,
  PropertyShift,
  type Repair,
  Row,
  type Scanner,
  ScanStatus,
  TokenType,
} from "../../records/table.ts";
import { isBlankUuid, UuidForm, unescapedUuid, uuidForm } from "../../records/uuid.ts";
import { type Batch, bodyOf, bodyTail, type LineNote, lineHead } from "./batch.ts";
import { isBlankId, isUuidText, type LineHash, uuidOfSource } from "./event-uuid.ts";
import {
  type Conversion,
  type Format,
  type FormatOptions,
  type LossCode,
  ShownFacts,
} from "./formats/format.ts";
import { isObject, valuesOf } from "./json-text.ts";
import type { Line } from "./lines.ts";

interface BatchMakerOptions {
  readonly format: Format;
  readonly formatOptions: FormatOptions;
  readonly hash: LineHash;
  readonly createScanner: (rows?: number) => Scanner;
}

interface Item {
  readonly body: Buffer;
  readonly table: Uint32Array;
  readonly row: number;
}

interface Loss {
  readonly code: LossCode;
  readonly detail: string;
}

export class BatchMaker {
  readonly #options: BatchMakerOptions;
  readonly #scanner: Scanner;
  readonly #lineScanner: Scanner;
  readonly #conversion: Conversion;
  #losses: Loss[] = [];

  constructor(options: BatchMakerOptions) {
    this.#options = options;
    this.#scanner = options.createScanner();
    this.#lineScanner = options.createScanner(1);
    this.#conversion = {
      ...options.formatOptions,
      lost: (code, detail) => void this.#losses.push({ code, detail }),
      shown: new ShownFacts(),
    };
  }

  make(lines: readonly Line[], notes: LineNote[], lastLine: number): Batch {
    const { format, hash } = this.#options;
    const work = new BatchWork(notes);
    const isScanned = format.needsConversion !== undefined;
    const items = isScanned ? this.#scanned(lines, this.#scanner) : undefined;
    for (const [index, line] of lines.entries()) {
      const { bytes, number } = line;
      work.line = number;
      hash.add(bytes);
      let item: Item | undefined;
      if (format.needsConversion?.(bytes) === false)
        item = items === undefined ? this.#scanned([line], this.#lineScanner)?.[0] : items[index];
      if (item === undefined || !this.#pass(work, bytes, item)) this.#convert(work, bytes);
    }
    const { items: texts, lines: numbers, links } = work;
    const fingerprint = hash.fingerprint();
    return { items: texts, lines: numbers, links, notes, lastLine, fingerprint };
  }

  #scanned(lines: readonly Line[], scanner: Scanner): Item[] | undefined {
    const { length } = lines;
    const texts = lines.map(({ bytes }) => bytes);
    const body = bodyOf(lineHead, texts);
    if (length === 0 || scanner.scanAtOnce(body) !== ScanStatus.Ok) return undefined;
    const { table } = scanner;
    if (table[Header.RowCount] !== length || table[Header.ItemCount] !== length) return undefined;
    const items: Item[] = [];
    let start = lineHead.length;
    for (const text of texts) {
      const row = Header.Words + items.length * Row.Words;
      const end = start + text.length;
      if (table[row + Row.ItemStart] !== start || table[row + Row.ItemEnd] !== end)
        return undefined;
      items.push({ body, table, row });
      start = end + 1;
    }
    return items;
  }

  /**
   * Adds an event unchanged, but adds a uuid if the event has none. Returns false if the event must
   * be converted.
   */
  #pass(work: BatchWork, bytes: Buffer, item: Item): boolean {
    const { table, row } = item;
    const fields = table[row + Row.FieldTypes]!;
    if (typeAt(table[row + Row.MoreTypes]!, MoreShift.Item) !== TokenType.Object) return false;
    if (!canBeName.has(typeAt(fields, FieldShift.Event)) || needsReading(item)) return false;
    if (fields === 0 || hasUuid(item)) {
      work.add(bytes);
      return true;
    }
    if (this.#options.format.mayHaveOtherId?.(bytes) === true) return false;
    const type = typeAt(fields, FieldShift.Uuid);
    if (type !== TokenType.Absent && type !== TokenType.Null && type !== TokenType.EmptyString)
      work.note("invalid_uuid", invalidUuid);
    const member = Buffer.from(`,"uuid":"${this.#options.hash.uuid()}"}`);
    work.add(Buffer.concat([bytes.subarray(0, -1), member]));
    return true;
  }

  #convert(work: BatchWork, bytes: Buffer): void {
    const fail = (error: unknown): void => {
      const [code, detail] = whyNot(error as Error);
      work.note(code, { detail, isStored: false });
    };
    try {
      const { values, fault } = this.#valuesOf(work, bytes);
      for (const [nth, value] of values.entries()) {
        try {
          this.#convertValue(work, value, nth);
        } catch (error) {
          fail(error);
        }
      }
      if (fault !== undefined) fail(fault);
    } catch (error) {
      fail(error);
    }
  }

  #valuesOf(work: BatchWork, bytes: Buffer): ReturnType<typeof valuesOf> {
    const text = bytes.toString("utf8");
    const isMalformed = text.includes("\ufffd") && !isUtf8(bytes);
    const read = valuesOf(text);
    if (read.fault === undefined && !isMalformed) return read;
    const repair = this.#repaired(bodyOf(lineHead, [bytes]));
    if (repair === undefined) {
      if (isMalformed) work.note("invalid_utf8", invalidUtf8);
      return read;
    }
    if (repair.malformed.length > 0) work.note("invalid_utf8", invalidUtf8);
    if (repair.nonFinite.length > 0) work.note("non_finite_number", nonFiniteNumber);
    const end = repair.text.length - bodyTail.length;
    return valuesOf(repair.text.toString("utf8", lineHead.length, end));
  }

  /** Returns the body as the gateway would repair it, or undefined if that is not enough. */
  #repaired(body: Buffer): Repair | undefined {
    const scanner = this.#lineScanner;
    const { table } = scanner;
    scanner.scan(body);
    if (table[Header.RepairedBytes] === 0) return undefined;
    const repair = {
      text: Buffer.allocUnsafe(table[Header.RepairedBytes]!),
      malformed: new Uint32Array(table[Header.Malformed]!),
      nonFinite: new Uint32Array(table[Header.NonFinite]!),
      progress: new Uint32Array(5),
    };
    scanner.repair(body, body.length, repair);
    return scanner.scan(repair.text) === ScanStatus.Ok ? repair : undefined;
  }

  #convertValue(work: BatchWork, value: unknown, nth: number): void {
    const { format, hash } = this.#options;
    if (!isObject(value)) {
      const detail =
        nth === 0 ? "the line is not a JSON object" : "a value of the line is not an object";
      work.note("not_an_object", { detail, isStored: false });
      return;
    }
    this.#losses = [];
    const converted = format.convert(value, this.#conversion);
    if ("skipped" in converted) {
      work.note(converted.skipped, { detail: converted.detail, isStored: false });
      return;
    }
    const { event, uuid, links = [], also } = converted;
    const source = converted.source?.some(isBlankId) === true ? undefined : converted.source;
    if (typeof (event.event ?? "") !== "string") {
      const { nameField = "event" } = format;
      const detail = `${nameField} is ${kindOf(event.event)}, but must be text`;
      work.note("wrong_type", { detail, isStored: false });
      return;
    }
    const ofLine = (): string => (nth === 0 ? hash.uuid() : uuidOfSource([hash.uuid(), nth]));
    const own = isUuidText(uuid) ? uuid : source === undefined ? ofLine() : uuidOfSource(source);
    const text = JSON.stringify({ ...event, uuid: own });
    const isWrong = !isUuidText(uuid) && source === undefined && (uuid ?? "") !== "";
    if (isWrong) work.note("invalid_uuid", invalidUuid);
    for (const { code, detail } of this.#losses) work.note(code, { detail, isStored: true });
    work.add(Buffer.from(text));
    for (const link of links) work.addEvent(link.event, uuidOfSource(link.source));
    work.links += links.length;
    if (also !== undefined) work.addEvent(also, uuidOfSource(["also", own]));
  }
}

class BatchWork {
  readonly items: Buffer[] = [];
  readonly lines: number[] = [];
  readonly #notes: LineNote[];
  links = 0;
  line = 0;

  constructor(notes: LineNote[]) {
    this.#notes = notes;
  }

  note(code: string, { detail, isStored }: Pick<LineNote, "detail" | "isStored">): void {
    const last = this.#notes.at(-1);
    if (isStored && last?.line === this.line && last.code === code && last.detail === detail)
      return;
    this.#notes.push({ line: this.line, code, detail, isStored });
  }

  add(item: Buffer): void {
    this.items.push(item);
    this.lines.push(this.line);
  }

  addEvent(event: object, uuid: string): void {
    this.add(Buffer.from(JSON.stringify({ ...event, uuid })));
  }
}

/** Returns true if the gateway could misread a value, such as a number as a time. */
function needsReading(item: Item): boolean {
  const { table, row } = item;
  const fields = table[row + Row.FieldTypes]!;
  const properties = table[row + Row.PropertyTypes]!;
  return (
    typeAt(fields, FieldShift.Timestamp) === TokenType.Number ||
    isText(typeAt(fields, FieldShift.Properties)) ||
    isText(typeAt(fields, FieldShift.Set)) ||
    isText(typeAt(fields, FieldShift.SetOnce)) ||
    isText(typeAt(properties, PropertyShift.Set)) ||
    isText(typeAt(properties, PropertyShift.GroupSet)) ||
    isText(typeAt(properties, PropertyShift.Groups)) ||
    isText(typeAt(extraTypes(item), ExtraShift.PropertiesSetOnce))
  );
}

function isText(type: TokenType): boolean {
  return (
    type === TokenType.PlainString ||
    type === TokenType.EscapedString ||
    type === TokenType.EmptyString
  );
}

const canBeName: ReadonlySet<TokenType> = new Set([
  TokenType.Absent,
  TokenType.Null,
  TokenType.EmptyString,
  TokenType.PlainString,
  TokenType.EscapedString,
]);

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return isObject(value) ? "an object" : `a ${typeof value === "object" ? "number" : typeof value}`;
}

function whyNot(error: Error): readonly [string, string] {
  if (error instanceof SyntaxError) return ["not_json", `the line is not JSON: ${error.message}`];
  // Deeply nested values exhaust the stack.
  const why =
    error instanceof RangeError ? "the values of the line are nested too deeply" : error.message;
  return ["not_convertible", `the line cannot be converted: ${why}`];
}

const invalidUtf8 = {
  detail: "the line has bytes that are not UTF-8: they are stored as U+FFFD",
  isStored: true,
} as const;
const nonFiniteNumber = { detail: warningTable.non_finite_number.detail, isStored: true };

const invalidUuid = {
  detail:
    "uuid is not a UUID, or is the nil or the max UUID: the event is stored with a uuid derived from the line",
  isStored: true,
} as const;

function hasUuid({ body, table, row }: Item): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Uuid);
  const [start, end] = [table[row + Row.UuidStart]!, table[row + Row.UuidEnd]!];
  if (type === TokenType.PlainString)
    return uuidForm(body, start + 1, end - 1) !== UuidForm.None && !isBlankUuid(body, start + 1);
  const sent = type === TokenType.EscapedString ? unescapedUuid(body, start, end) : undefined;
  return sent !== undefined && !isBlankUuid(sent, 0);
}
