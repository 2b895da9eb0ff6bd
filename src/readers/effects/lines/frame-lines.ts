// Reads the lines of a stored frame, one after another. All lines are scanned in one call, as the
// items of one batch. Where that fails, or where an item is not just what is on its line, the lines
// are scanned one by one, so that a line that is no JSON spoils no other. Keeps no line: the
// visitor hears of each, and of those that cannot be read.

import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { Ascii, isJsonSpace } from "../../../platform/base/ascii.ts";
import { typeAt } from "../../../records/item-view.ts";
import { loadAddon } from "../../../records/native.ts";
import { Header, MoreShift, Row, type Scanner, ScanStatus } from "../../../records/table.ts";
import type { StoredFrame } from "../../stream/stored-frame.ts";
import { EventFacts } from "../rules/event-facts.ts";
import { PlainTexts } from "../rules/plain-texts.ts";
import type { Rejection } from "../types.ts";
import type { LineVisitor } from "./line.ts";
import { MemberFacts } from "./member-facts.ts";
import { ReusedLine } from "./reused-line.ts";
import { viewed } from "./viewed-bytes.ts";
import { type ScannedText, WrittenLines } from "./written-lines.ts";

/** Rows of the table of a scanner for frames: more lines than most frames have. */
export const frameRows = 1_024;

/** The reading pauses behind a line whose index has all these bits. */
const pauseMask = 63;

const beforeLines = Buffer.from('{"batch":[');
const behindLines = Buffer.from("]}");
const wrapBytes = beforeLines.length + behindLines.length;
/** Memory for a frame that is kept for the next one: as much as most frames need. */
const keptBytesMax = 2_097_152;

/** Memory for a frame begins with this. */
const roomMin = 65_536;

const noFrame: StoredFrame = {
  stream: "",
  lane: "live",
  partition: 0,
  epoch: 1,
  sequence: 0,
  projectId: undefined,
  messageId: "",
  storedAtMs: 0,
  data: Buffer.alloc(0),
};

interface FrameLinesOptions {
  /** Belongs to the reader alone, from now on. */
  readonly scanner: Scanner;
}

/** Where a line is in a text. */
interface LineSpan {
  readonly start: number;
  readonly end: number;
}

interface RowPlace {
  readonly text: ScannedText;
  /** Index of the row in the table. */
  readonly index: number;
  /** Index of the line in the frame. */
  readonly line: number;
}

/** Hashes of events are only to be compared with those of the same reader: each has its key. */
export class FrameLines {
  readonly #scanner: Scanner;
  readonly #joinLines = loadAddon().joinLines;
  readonly #facts = new EventFacts();
  readonly #written: WrittenLines;
  readonly #memberFacts = new MemberFacts();
  readonly #line: ReusedLine;
  /** The frame's lines as one batch. */
  #text: ScannedText;
  #textEnd = 0;
  /** Where each line ends in the text. */
  #ends = new Uint32Array(frameRows);
  #lines = 0;

  constructor({ scanner }: FrameLinesOptions) {
    this.#scanner = scanner;
    this.#text = { ...viewed(Buffer.alloc(0)), table: scanner.table };
    const uuidKey = randomFillSync(new Uint32Array(2));
    this.#written = new WrittenLines(this.#text, uuidKey);
    this.#line = new ReusedLine({
      frame: noFrame,
      facts: this.#facts,
      written: this.#written,
      texts: new PlainTexts(scanner.normalise),
      uuidKey,
    });
  }

  /**
   * Tells the visitor of every line, in order. Blank lines count as lines and are told to nobody.
   * Pauses after every 64 lines, where others may do something; but no other frame is begun.
   * @throws Error: the scanner has no memory.
   */
  *read(frame: StoredFrame, visitor: LineVisitor): Generator<void, void> {
    this.#line.beginFrame(frame);
    this.#takeText(frame.data);
    const read = this.#lines === 0 ? 0 : yield* this.#readTogether(frame, visitor);
    for (let line = read; line < this.#lines; line++) {
      this.#readAlone(frame, visitor, line);
      if ((line & pauseMask) === pauseMask) yield;
    }
    if (this.#text.body.length > keptBytesMax) this.#setText(Buffer.alloc(0));
  }

  /** Makes the frame one batch: its line feeds become commas. */
  #takeText(data: Uint8Array): void {
    const { length } = data;
    this.#makeRoom(length + wrapBytes);
    const { body } = this.#text;
    const start = beforeLines.copy(body);
    body.set(data, start);
    const isClosed = length > 0 && data[length - 1] === Ascii.LineFeed;
    const end = start + (isClosed ? length - 1 : length);
    behindLines.copy(body, end);
    this.#textEnd = end + behindLines.length;
    this.#lines = length === 0 ? 0 : this.#joinLines(body, start, end, this.#ends);
    if (this.#lines <= this.#ends.length) return;
    this.#ends = new Uint32Array(2 * this.#lines);
    body.set(data, start);
    behindLines.copy(body, end);
    this.#joinLines(body, start, end, this.#ends);
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#text.body.length) return;
    let room = roomMin;
    while (room < bytes) room *= 2;
    this.#setText(Buffer.allocUnsafeSlow(room));
  }

  #setText(body: Buffer): void {
    this.#text = { ...viewed(body), table: this.#scanner.table };
  }

  #spanOf(line: number): LineSpan {
    const start = line === 0 ? beforeLines.length : this.#ends[line - 1]! + 1;
    return { start, end: this.#ends[line]! };
  }

  /** Reads lines until one is not an item of the batch; returns its index. */
  *#readTogether(frame: StoredFrame, visitor: LineVisitor): Generator<void, number> {
    const scanner = this.#scanner;
    const text = this.#text;
    const { table } = text;
    const batch = text.body.subarray(0, this.#textEnd);
    if (!isScanned(scanner.scan(batch))) return 0;
    let line = 0;
    for (;;) {
      const rowCount = table[Header.RowCount]!;
      const { start } = this.#spanOf(line);
      const read = this.#written.read(text, { ends: this.#ends, lines: this.#lines, line, start });
      for (let index = 0; index < read; index++) {
        if (!this.#written.isWritten(index) && !isItem(text, index, this.#spanOf(line)))
          return line;
        this.#readRow(frame, visitor, { text, index, line });
        if ((line & pauseMask) === pauseMask) yield;
        line++;
      }
      if (read < rowCount || line >= table[Header.ItemCount]!) return line;
      scanner.scanMore(batch);
    }
  }

  /** Reads a line as a batch of its own, in the place where it is in the text. */
  #readAlone(frame: StoredFrame, visitor: LineVisitor, line: number): void {
    const { body } = this.#text;
    const { start, end } = this.#spanOf(line);
    const next = body.readUInt16LE(end);
    // The lines before this one are done with.
    beforeLines.copy(body, start - beforeLines.length);
    behindLines.copy(body, end);
    const batch = body.subarray(start - beforeLines.length, end + behindLines.length);
    const text = { ...viewed(batch), table: this.#scanner.table };
    const span = { start: beforeLines.length, end: beforeLines.length + end - start };
    const isOne =
      isScanned(this.#scanner.scan(batch)) &&
      text.table[Header.ItemCount] === 1 &&
      isItem(text, 0, span);
    if (isOne) {
      const ends = Uint32Array.of(span.end);
      this.#written.read(text, { ends, lines: 1, line: 0, start: span.start });
      this.#readRow(frame, visitor, { text, index: 0, line });
    } else {
      const fault = this.#faultOf(batch.subarray(span.start, span.end));
      if (fault !== undefined) visitor.unreadable(frame, line, frame.projectId ?? "", fault);
    }
    body.writeUInt16LE(next, end);
  }

  /** What is wrong with a line that is no item; undefined where it is blank. */
  #faultOf(line: Buffer): Rejection | undefined {
    const status = this.#scanner.scan(line);
    if (status === ScanStatus.Empty) return undefined;
    const at = this.#scanner.table[Header.ErrorOffset]!;
    if (status === ScanStatus.InvalidUtf8)
      return { reason: "not_json", detail: `it is not UTF-8 from byte ${at} on` };
    return { reason: "not_json", detail: `it is not JSON from byte ${at} on` };
  }

  #readRow(frame: StoredFrame, visitor: LineVisitor, { text, index, line }: RowPlace): void {
    const facts = this.#facts;
    const written = this.#written;
    const isWritten = written.isWritten(index) && written.fill(facts, index, frame.storedAtMs);
    if (!isWritten) {
      const fault = this.#fillByMembers(text, index, frame.storedAtMs);
      if (fault !== undefined) {
        const projectId = frame.projectId ?? this.#memberFacts.projectId ?? "";
        visitor.unreadable(frame, line, projectId, fault);
        return;
      }
    }
    if (frame.projectId !== undefined && facts.projectId !== frame.projectId) {
      const detail = `it says that it is of the project ${facts.projectId}`;
      visitor.unreadable(frame, line, frame.projectId, { reason: "wrong_project", detail });
      return;
    }
    if (isWritten) this.#line.setWritten(line, index);
    else this.#line.set(line);
    visitor.line(this.#line);
  }

  #fillByMembers(
    { body, table }: ScannedText,
    index: number,
    storedAtMs: number,
  ): Rejection | undefined {
    const row = Header.Words + index * Row.Words;
    const span = {
      start: table[row + Row.ItemStart]!,
      end: table[row + Row.ItemEnd]!,
      type: typeAt(table[row + Row.MoreTypes]!, MoreShift.Item),
    };
    return this.#memberFacts.fill(this.#facts, { body, ...span }, storedAtMs);
  }
}

function isScanned(status: ScanStatus): boolean {
  if (status === ScanStatus.OutOfMemory) throw new Error("Scanning a frame: no memory");
  return status === ScanStatus.Ok;
}

/** Whether the item of the row is all that is on the line, but for white space. */
function isItem({ body, table }: ScannedText, index: number, line: LineSpan): boolean {
  let { start, end } = line;
  const row = Header.Words + index * Row.Words;
  const itemStart = table[row + Row.ItemStart]!;
  const itemEnd = table[row + Row.ItemEnd]!;
  if (itemStart < start || itemEnd > end) return false;
  while (start < itemStart && isJsonSpace(body[start])) start++;
  while (end > itemEnd && isJsonSpace(body[end - 1])) end--;
  return itemStart === start && itemEnd === end;
}
