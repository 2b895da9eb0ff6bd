// Creates the body of a request from a block of lines. The bytes of lines that are already events
// are copied; other lines are parsed and converted.

import { isUtf8 } from "node:buffer";
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
import { type Batch, bodyTail, type LineNote, paddingOf } from "./batch.ts";
import { isBlankId, isUuidText, uuidOfSource } from "./event-uuid.ts";
import type { Conversion, Format, FormatOptions, LossCode, Shown } from "./formats/format.ts";
import { ItemWriter } from "./item-writer.ts";
import { isObject, valuesOf } from "./json-text.ts";
import type { LineBlock } from "./line-block.ts";
import type { LineHash } from "./line-hash.ts";

interface BatchMakerOptions {
  readonly head: Buffer;
  readonly format: Format;
  readonly formatOptions: FormatOptions;
  readonly hash: LineHash;
  readonly createScanner: (rows?: number) => Scanner;
  readonly takeBuffer: () => Buffer;
  readonly giveBuffer: (buffer: Buffer) => void;
}

interface Item {
  body: Buffer;
  table: Uint32Array;
  row: number;
  start: number;
  end: number;
}

interface Loss {
  readonly code: LossCode;
  readonly detail: string;
}

const lineHead = Buffer.from('{"batch":[');
/**
 * Maximum number of facts of a kind. A link that was dropped is sent again with the same uuid, so
 * readers recognize it.
 */
const factsMax = 100_000;

export class BatchMaker {
  readonly #options: BatchMakerOptions;
  readonly #scanner: Scanner;
  readonly #lineScanner: Scanner;
  readonly #item: Item;
  readonly #conversion: Conversion;
  #losses: Loss[] = [];

  constructor(options: BatchMakerOptions) {
    this.#options = options;
    this.#scanner = options.createScanner();
    this.#lineScanner = options.createScanner(1);
    const { table } = this.#lineScanner;
    this.#item = { body: Buffer.alloc(0), table, row: 0, start: 0, end: 0 };
    this.#conversion = {
      ...options.formatOptions,
      lost: (code, detail) => void this.#losses.push({ code, detail }),
      shown: new ShownFacts(),
    };
  }

  /** `notes` are the notes of lines outside the block. */
  make(block: LineBlock, notes: LineNote[], lastLine: number): Batch {
    const work = new BlockWork(block, notes, this.#options);
    block.close();
    const { needsConversion } = this.#options.format;
    const isScanned = needsConversion !== undefined && this.#scansWhole(block);
    for (let index = 0; index < block.count; index++) {
      const [start, end] = [block.starts[index]!, block.ends[index]!];
      this.#options.hash.add(block.buffer, start, end);
      if (needsConversion === undefined || needsConversion(block.buffer, start, end)) {
        this.#convert(work, index);
      } else if (isScanned) {
        const item = this.#item;
        item.body = block.buffer;
        item.table = this.#scanner.table;
        item.row = Header.Words + index * Row.Words;
        item.start = start;
        item.end = end;
        this.#pass(work, index);
      } else if (this.#scansAlone(work, index)) this.#pass(work, index);
    }
    return work.finish(lastLine, this.#options.hash.fingerprint());
  }

  /**
   * Returns whether each line of the block is a single JSON value with its own row in the table.
   */
  #scansWhole({ buffer, length, starts, ends, count }: LineBlock): boolean {
    if (count === 0) return false;
    const scanner = this.#scanner;
    if (scanner.scanAtOnce(buffer.subarray(0, length)) !== ScanStatus.Ok) return false;
    const { table } = scanner;
    if (table[Header.RowCount] !== count || table[Header.ItemCount] !== count) return false;
    for (let index = 0; index < count; index++) {
      const row = Header.Words + index * Row.Words;
      if (table[row + Row.ItemStart] !== starts[index] || table[row + Row.ItemEnd] !== ends[index])
        return false;
    }
    return true;
  }

  /** Scans a single line. If the line is not a single value, converts it and returns false. */
  #scansAlone(work: BlockWork, index: number): boolean {
    const { buffer, starts, ends } = work.block;
    const line = buffer.subarray(starts[index]!, ends[index]!);
    let body: Buffer = Buffer.concat([lineHead, line, bodyTail]);
    const { table } = this.#lineScanner;
    let status = this.#lineScanner.scan(body);
    const repair = this.#repaired(body);
    if (repair !== undefined) {
      body = repair.text;
      status = ScanStatus.Ok;
    }
    const end = body.length - bodyTail.length;
    const row = Header.Words;
    const isOne =
      status === ScanStatus.Ok &&
      table[Header.ItemCount] === 1 &&
      table[row + Row.ItemStart] === lineHead.length &&
      table[row + Row.ItemEnd] === end;
    if (isOne) {
      if (repair !== undefined) noteRepair(work, index, repair);
      Object.assign(this.#item, { body, table, row, start: lineHead.length, end });
      return true;
    }
    // The line may have several values, each of which is an event.
    this.#convert(work, index);
    return false;
  }

  /**
   * Returns the gateway's repair of a body: U+FFFD for malformed bytes, null for NaN and Infinity.
   * Returns undefined if the body needs another repair.
   */
  #repaired(body: Buffer): Repair | undefined {
    const scanner = this.#lineScanner;
    const { table } = scanner;
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

  /** Copies the event. If it lacks a uuid, adds one. */
  #pass(work: BlockWork, index: number): void {
    const { body, table, row, start, end } = this.#item;
    const fields = table[row + Row.FieldTypes]!;
    const itemType = typeAt(table[row + Row.MoreTypes]!, MoreShift.Item);
    const isObjectItem = itemType === TokenType.Object;
    const isConverted =
      itemType === TokenType.Array ||
      (isObjectItem &&
        (!canBeName.has(typeAt(fields, FieldShift.Event)) || needsReading(this.#item)));
    if (isConverted) {
      // The conversion reports the error of the line.
      this.#convert(work, index);
      return;
    }
    // An object without known fields is not an event, and may be empty.
    if (!isObjectItem || fields === 0 || hasUuid(this.#item)) {
      work.keep(index, body, start, end);
      return;
    }
    if (this.#options.format.mayHaveOtherId?.(body, start, end) === true) {
      this.#convert(work, index);
      return;
    }
    const type = typeAt(fields, FieldShift.Uuid);
    if (type !== TokenType.Absent && type !== TokenType.Null && type !== TokenType.EmptyString)
      work.note(index, "invalid_uuid", invalidUuid);
    work.keepWithUuid(index, body, [start, end], this.#options.hash.uuid());
  }

  /** Converts the values of a line. A value that fails does not affect the other values. */
  #convert(work: BlockWork, index: number): void {
    const { buffer, starts, ends } = work.block;
    const left = (error: Error): void => {
      const [code, detail] = whyNot(error);
      work.note(index, code, { detail, isStored: false });
    };
    try {
      const line = buffer.subarray(starts[index]!, ends[index]!);
      const { values, fault } = this.#valuesOf(work, index, line);
      for (const [nth, value] of values.entries()) {
        try {
          this.#convertOrThrow(work, index, { value, nth });
        } catch (error) {
          left(error as Error);
        }
      }
      if (fault !== undefined) left(fault);
    } catch (error) {
      left(error as Error);
    }
  }

  #valuesOf(work: BlockWork, index: number, line: Buffer): ReturnType<typeof valuesOf> {
    const text = line.toString("utf8");
    const isMalformed = text.includes("\ufffd") && !isUtf8(line);
    const read = valuesOf(text);
    if (read.fault === undefined && !isMalformed) return read;
    const body = Buffer.concat([lineHead, line, bodyTail]);
    this.#lineScanner.scan(body);
    const repair = this.#repaired(body);
    if (repair !== undefined) {
      noteRepair(work, index, repair);
      const end = repair.text.length - bodyTail.length;
      return valuesOf(repair.text.toString("utf8", lineHead.length, end));
    }
    if (isMalformed) work.note(index, "invalid_utf8", invalidUtf8);
    return read;
  }

  /** If it throws, nothing of the value is written. `nth` is the index of the value in the line. */
  #convertOrThrow(
    work: BlockWork,
    index: number,
    { value, nth }: { readonly value: unknown; readonly nth: number },
  ): void {
    const { format, hash } = this.#options;
    if (!isObject(value)) {
      const detail =
        nth === 0 ? "the line is not a JSON object" : "a value of the line is not an object";
      work.note(index, "not_an_object", { detail, isStored: false });
      return;
    }
    this.#losses = [];
    const converted = format.convert(value, this.#conversion);
    if ("skipped" in converted) {
      work.note(index, converted.skipped, { detail: converted.detail, isStored: false });
      return;
    }
    const { event, uuid, links = [], also } = converted;
    const source = converted.source?.some(isBlankId) === true ? undefined : converted.source;
    if (typeof (event.event ?? "") !== "string") {
      const { nameField = "event" } = format;
      const detail = `${nameField} is ${kindOf(event.event)}, but must be text`;
      work.note(index, "wrong_type", { detail, isStored: false });
      return;
    }
    const ofLine = (): string => (nth === 0 ? hash.uuid() : uuidOfSource([hash.uuid(), nth]));
    const own = isUuidText(uuid) ? uuid : source === undefined ? ofLine() : uuidOfSource(source);
    const text = JSON.stringify({ ...event, uuid: own });
    const isWrong = !isUuidText(uuid) && source === undefined && (uuid ?? "") !== "";
    if (isWrong) work.note(index, "invalid_uuid", invalidUuid);
    for (const { code, detail } of this.#losses) work.note(index, code, { detail, isStored: true });
    work.replace(index, text);
    for (const link of links)
      work.replace(index, JSON.stringify({ ...link.event, uuid: uuidOfSource(link.source) }));
    work.links += links.length;
    if (also !== undefined)
      work.replace(index, JSON.stringify({ ...also, uuid: uuidOfSource(["also", own]) }));
  }
}

class ShownFacts implements Shown {
  readonly #kinds = new Map<string, Set<string>>();

  add(kind: string, fact: string): boolean {
    const facts = this.#kinds.get(kind) ?? new Set();
    this.#kinds.set(kind, facts);
    if (facts.has(fact)) return false;
    if (facts.size >= factsMax) {
      for (const oldest of facts) {
        facts.delete(oldest);
        break;
      }
    }
    facts.add(fact);
    return true;
  }

  has(kind: string, fact: string): boolean {
    return this.#kinds.get(kind)?.has(fact) === true;
  }
}

/**
 * Returns whether the gateway may misread a value: a number as a time, or text that contains an
 * object.
 */
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

/** Types of a valid event name. The gateway reports an event whose name is absent or empty. */
const canBeName: ReadonlySet<TokenType> = new Set([
  ...[TokenType.Absent, TokenType.Null, TokenType.EmptyString],
  ...[TokenType.PlainString, TokenType.EscapedString],
]);

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return isObject(value) ? "an object" : `a ${typeof value === "object" ? "number" : typeof value}`;
}

function whyNot(error: Error): readonly [string, string] {
  if (error instanceof SyntaxError) return ["not_json", `the line is not JSON: ${error.message}`];
  // Deeply nested values exhaust the stack.
  const why = error instanceof RangeError ? "its values are nested too deeply" : error.message;
  return ["not_convertible", `the line cannot be converted: ${why}`];
}

const invalidUtf8 = {
  detail: "bytes that are not UTF-8: stored as U+FFFD",
  isStored: true,
} as const;
const nonFiniteNumber = { detail: warningTable.non_finite_number.detail, isStored: true };

function noteRepair(work: BlockWork, index: number, { malformed, nonFinite }: Repair): void {
  if (malformed.length > 0) work.note(index, "invalid_utf8", invalidUtf8);
  if (nonFinite.length > 0) work.note(index, "non_finite_number", nonFiniteNumber);
}

const invalidUuid = {
  detail:
    "uuid is not a UUID, or is the nil or the max UUID: stored with one derived from the line",
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

/** The body of one block while it is built. */
class BlockWork {
  readonly block: LineBlock;
  readonly #notes: LineNote[];
  readonly #options: BatchMakerOptions;
  links = 0;
  #writer: ItemWriter | undefined = undefined;

  constructor(block: LineBlock, notes: LineNote[], options: BatchMakerOptions) {
    this.block = block;
    this.#notes = notes;
    this.#options = options;
  }

  note(
    index: number,
    code: string,
    { detail, isStored }: Pick<LineNote, "detail" | "isStored">,
  ): void {
    const line = this.block.numbers[index]!;
    const last = this.#notes.at(-1);
    // A line that was first scanned and then converted reports the same error again.
    if (isStored && last?.line === line && last.code === code && last.detail === detail) return;
    this.#notes.push({ line, code, detail, isStored });
    if (!isStored) this.#writerFrom(index);
  }

  keep(index: number, body: Buffer, start: number, end: number): void {
    if (this.#writer === undefined && body === this.block.buffer) return;
    this.#writerFrom(index).copy(body, start, end, this.block.numbers[index]!);
  }

  keepWithUuid(index: number, body: Buffer, span: readonly [number, number], uuid: string): void {
    this.#writerFrom(index).copyWithUuid(body, span, uuid, this.block.numbers[index]!);
  }

  replace(index: number, text: string): void {
    this.#writerFrom(index).writeText(text, this.block.numbers[index]!);
  }

  finish(lastLine: number, fingerprint: string): Batch {
    const { giveBuffer } = this.#options;
    const writer = this.#writer;
    const { block } = this;
    if (writer === undefined) {
      const { starts, ends, numbers: lines, buffer, length } = block;
      const body = padded(buffer, length, starts.length);
      return {
        ...{ body, starts, ends, lines, notes: this.#notes, lastLine, fingerprint, links: 0 },
        release: () => giveBuffer(buffer),
      };
    }
    giveBuffer(block.buffer);
    writer.close();
    const { starts, ends, lines, buffer, length } = writer;
    const body = padded(buffer, length, starts.length);
    return {
      ...{ body, starts, ends, lines, notes: this.#notes, lastLine, fingerprint },
      links: this.links,
      release: () => giveBuffer(buffer),
    };
  }

  #writerFrom(index: number): ItemWriter {
    if (this.#writer !== undefined) return this.#writer;
    const { takeBuffer, head } = this.#options;
    const writer = new ItemWriter(takeBuffer(), head);
    const { buffer, starts, ends, numbers } = this.block;
    for (let before = 0; before < index; before++)
      writer.copy(buffer, starts[before]!, ends[before]!, numbers[before]!);
    this.#writer = writer;
    return writer;
  }
}

/** Returns the body with padding, if it needs any; empty if it has no event. */
function padded(buffer: Buffer, length: number, events: number): Buffer {
  if (events === 0) return buffer.subarray(0, 0);
  const body = buffer.subarray(0, length);
  const blanks = paddingOf(length, events);
  if (blanks === 0) return body;
  if (length + blanks > buffer.length) return Buffer.concat([body, Buffer.alloc(blanks, " ")]);
  buffer.fill(" ", length, length + blanks);
  return buffer.subarray(0, length + blanks);
}
