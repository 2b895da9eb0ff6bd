// The changes of the rules to the items of a slice: replacements in their texts. The addon then
// writes all changed texts and their rows in one call. The memory is reused.

import { Buffer } from "node:buffer";
import { Change, Edit, EditText } from "../records/item-changes.ts";
import type { ItemView } from "../records/item-view.ts";
import { RowTasks } from "../records/row-tasks.ts";
import { Header, Row, TokenType } from "../records/table.ts";

const wordsAtFirst = 4_096;
const textBytesMin = 4_096;
/** Maximum number of edits that are sorted by insertion, which is faster for few edits. */
const insertedMax = 32;
/** A bracket before and after each text. */
const bracketBytes = 2;

export class ItemChanges {
  words = new Uint32Array(wordsAtFirst);
  /** The replacements. The constant texts of the rules are at the beginning. */
  texts = Buffer.alloc(textBytesMin);
  textsEnd = 0;
  /** Number of changed items. */
  count = 0;
  /** Maximum number of bytes of all changed texts. */
  bytesMax = 0;
  #constants: Buffer = Buffer.alloc(0);
  #end = 1;
  #first = 1;
  #bytes = 0;
  #isSorted = true;
  #fieldTypes = 0;
  #propertyTypes = 0;
  #needsScan = false;

  /** Sets the constant texts, which are at the same offsets in `texts`. */
  begin(constants: Buffer): void {
    if (this.#constants === constants) return;
    this.#constants = constants;
    this.textsEnd = 0;
    this.#makeRoom(constants.length);
    this.textsEnd = constants.copy(this.texts, 0);
  }

  /** Forgets all changes. */
  clear(): void {
    this.count = 0;
    this.bytesMax = 0;
    this.#end = 1;
    this.textsEnd = this.#constants.length;
  }

  /** Sets the words of tasks from which the addon adds changes to `words`. */
  beginEdits(tasks: Uint32Array): void {
    tasks[RowTasks.ChangesEnd] = this.#end;
    tasks[RowTasks.Changes] = this.count;
    tasks.fill(0, RowTasks.ChangedBytes, RowTasks.Rows);
  }

  /** Returns false if the changes did not fit: the space is then sufficient. */
  hasRoomForEdits(tasks: Uint32Array): boolean {
    const end = tasks[RowTasks.ChangesEnd]!;
    if (end <= this.words.length) return true;
    this.#grow(end);
    return false;
  }

  /** Takes the changes that the addon has added. */
  takeEdits(tasks: Uint32Array): void {
    const added = tasks[RowTasks.Changes]! - this.count;
    if (added === 0) return;
    this.#end = tasks[RowTasks.ChangesEnd]!;
    this.count += added;
    this.words[0] = this.count;
    this.bytesMax += tasks[RowTasks.ChangedBytes]! + added * bracketBytes;
  }

  /** Begins the edits of an item. */
  open({ table, row }: ItemView): void {
    const at = this.#end;
    this.#first = at + Change.Words;
    this.#end = this.#first;
    if (this.#end > this.words.length) this.#grow();
    this.words[at + Change.Row] = (row - Header.Words) / Row.Words;
    this.#bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]! + bracketBytes;
    this.#fieldTypes = table[row + Row.FieldTypes]!;
    this.#propertyTypes = table[row + Row.PropertyTypes]!;
    this.#needsScan = false;
    this.#isSorted = true;
  }

  /** Sets the type of a field whose value is replaced. `shift` is one of FieldShift. */
  setFieldType(shift: number, type: TokenType): void {
    this.#fieldTypes = (this.#fieldTypes & ~(0xf << shift)) | (type << shift);
  }

  /** Sets the type of a property. `shift` is one of PropertyShift. */
  setPropertyType(shift: number, type: TokenType): void {
    this.#propertyTypes = (this.#propertyTypes & ~(0xf << shift)) | (type << shift);
  }

  /** Notes that an edit changes the row in another way than by moving its spans. */
  scanText(): void {
    this.#needsScan = true;
  }

  /** Adds a text. It is at [returned offset, textsEnd). */
  addText(text: string): number {
    this.#makeRoom(3 * text.length);
    const start = this.textsEnd;
    this.textsEnd += this.texts.write(text, start, "utf8");
    return start;
  }

  addBytes(bytes: Buffer): number {
    this.#makeRoom(bytes.length);
    const start = this.textsEnd;
    this.textsEnd += bytes.copy(this.texts, start);
    return start;
  }

  /** Replaces [start, end) of the body. Edits inside of an earlier edit are ignored. */
  replace(start: number, end: number, textStart: number, textEnd: number): void {
    const at = this.#end;
    if (at + Edit.Words > this.words.length) this.#grow();
    const { words } = this;
    if (at > this.#first) {
      const before = at - Edit.Words;
      const order = start - words[before + Edit.Start]! || end - words[before + Edit.End]!;
      if (order < 0) this.#isSorted = false;
    }
    words[at + Edit.Start] = start;
    words[at + Edit.End] = end;
    words[at + Edit.TextStart] = textStart;
    words[at + Edit.TextEnd] = textEnd;
    this.#bytes += textEnd === EditText.Hashed ? EditText.HashBytes : textEnd - textStart;
    this.#end = at + Edit.Words;
  }

  /** Replaces a JSON value by its hash. */
  hash(start: number, end: number): void {
    this.replace(start, end, 0, EditText.Hashed);
  }

  /** Ends the edits of an item. Returns false if there are none. */
  close(): boolean {
    const first = this.#first;
    const at = first - Change.Words;
    if (this.#end === first) {
      this.#end = at;
      return false;
    }
    if (!this.#isSorted) this.#sort();
    const { words } = this;
    words[at + Change.Edits] = (this.#end - first) / Edit.Words;
    words[at + Change.FieldTypes] = this.#fieldTypes;
    words[at + Change.PropertyTypes] = this.#propertyTypes;
    words[at + Change.NeedsScan] = this.#needsScan ? 1 : 0;
    this.count++;
    words[0] = this.count;
    this.bytesMax += this.#bytes;
    return true;
  }

  /** Returns the part of the last item's body at [start, end) with its edits. */
  changedPart(
    body: Buffer,
    { start, end }: { readonly start: number; readonly end: number },
    hashOf: (value: Buffer) => string,
  ): Buffer {
    const { words } = this;
    const parts: Buffer[] = [];
    let read = start;
    for (let at = this.#first; at < this.#end; at += Edit.Words) {
      const editStart = words[at + Edit.Start]!;
      if (editStart < read || words[at + Edit.End]! > end) continue;
      parts.push(body.subarray(read, editStart));
      read = words[at + Edit.End]!;
      const textEnd = words[at + Edit.TextEnd]!;
      parts.push(
        textEnd === EditText.Hashed
          ? Buffer.from(hashOf(body.subarray(editStart, read)))
          : this.texts.subarray(words[at + Edit.TextStart], textEnd),
      );
    }
    return Buffer.concat([...parts, body.subarray(read, end)]);
  }

  /** Orders the edits like the text. An insertion precedes an edit at its offset. */
  #sort(): void {
    const first = this.#first;
    const count = (this.#end - first) / Edit.Words;
    if (count <= insertedMax) {
      for (let index = 1; index < count; index++) this.#insert(first, index);
      return;
    }
    const sent = this.words.slice(first, this.#end);
    const order = Array.from({ length: count }, (_, index) => index * Edit.Words).sort(
      (one, other) =>
        sent[one + Edit.Start]! - sent[other + Edit.Start]! ||
        sent[one + Edit.End]! - sent[other + Edit.End]! ||
        one - other,
    );
    for (const [place, at] of order.entries())
      this.words.set(sent.subarray(at, at + Edit.Words), first + place * Edit.Words);
  }

  /** Moves an edit to its place among the edits before it. */
  #insert(first: number, index: number): void {
    const { words } = this;
    const from = first + index * Edit.Words;
    const [start, end] = [words[from + Edit.Start]!, words[from + Edit.End]!];
    let at = from;
    for (; at > first; at -= Edit.Words) {
      const before = at - Edit.Words;
      const order = words[before + Edit.Start]! - start || words[before + Edit.End]! - end;
      if (order <= 0) break;
    }
    if (at === from) return;
    const [textStart, textEnd] = [words[from + Edit.TextStart]!, words[from + Edit.TextEnd]!];
    // For so few words, a loop is faster than `copyWithin`.
    for (let word = from - 1; word >= at; word--) words[word + Edit.Words] = words[word]!;
    words[at + Edit.Start] = start;
    words[at + Edit.End] = end;
    words[at + Edit.TextStart] = textStart;
    words[at + Edit.TextEnd] = textEnd;
  }

  #makeRoom(bytes: number): void {
    if (this.textsEnd + bytes <= this.texts.length) return;
    const texts = Buffer.allocUnsafeSlow(Math.max(textBytesMin, 2 * (this.textsEnd + bytes)));
    this.texts.copy(texts, 0, 0, this.textsEnd);
    this.texts = texts;
  }

  #grow(end: number = this.words.length): void {
    const words = new Uint32Array(2 * end);
    words.set(this.words);
    this.words = words;
  }
}

/** Returns the type of a JSON text from its bytes. */
export function typeOfText(text: Buffer, start: number, end: number): TokenType {
  switch (text[start]) {
    case 0x22: {
      if (end - start === 2) return TokenType.EmptyString;
      for (let at = start + 1; at < end; at++)
        if (text[at] === 0x5c) return TokenType.EscapedString;
      return TokenType.PlainString;
    }
    case 0x7b:
      return TokenType.Object;
    case 0x5b:
      return TokenType.Array;
    case 0x74:
      return TokenType.True;
    case 0x66:
      return TokenType.False;
    case 0x6e:
      return TokenType.Null;
    default:
      return TokenType.Number;
  }
}
