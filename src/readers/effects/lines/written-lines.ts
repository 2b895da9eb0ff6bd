// Lines as the gateway writes them, from the words that the addon says of each. A line that
// deviates in one byte is not among them; member-facts.ts gives the same facts for it. What only a
// few lines are asked for is read when they are.

import { typeAt } from "../../../records/item-view.ts";
import { Line, LineFlag, LineShift } from "../../../records/lines.ts";
import { loadAddon } from "../../../records/native.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  Header,
  hasExtra,
  PropertyShift,
  Row,
  TokenType,
  tableRows,
} from "../../../records/table.ts";
import { timestampTokenMs } from "../../../records/timestamp.ts";
import { stringBeginning } from "../../../records/token-beginning.ts";
import type { Kind } from "../../../records/verdict.ts";
import { type EventFacts, type Span, SpecialEvent, specialEventOf } from "../rules/event-facts.ts";
import { idText } from "../rules/id-text.ts";
import { boundReceivedMs, boundTimeMs } from "./line-facts.ts";
import { RecentIds } from "./recent-ids.ts";
import type { ViewedBytes } from "./viewed-bytes.ts";

export type ScannedText = ViewedBytes & { readonly table: Uint32Array };

/** Where the lines of a text are. */
interface LinePlaces {
  /** Where each of them ends. */
  readonly ends: Uint32Array;
  readonly lines: number;
  /** The line of the first row in the table, and where it begins. */
  readonly line: number;
  readonly start: number;
}

export class WrittenLines {
  readonly #readLines = loadAddon().readLines;
  readonly #words: Uint32Array;
  /** The same memory. */
  readonly #signed: Int32Array;
  readonly #doubles: Float64Array;
  readonly #place = new Uint32Array(5);
  readonly #ids = new RecentIds();
  #text: ScannedText;
  #projectId = "";

  /** `text`: one with the table of every text that will be read. `uuidKey`: see EventHash. */
  constructor(text: ScannedText, uuidKey: Uint32Array) {
    this.#text = text;
    this.#place.set(uuidKey, 3);
    this.#words = new Uint32Array(tableRows(text.table) * Line.Words);
    this.#signed = new Int32Array(this.#words.buffer);
    this.#doubles = new Float64Array(this.#words.buffer);
  }

  /** Reads the rows that the text's table has now. Returns how many of them have a line. */
  read(text: ScannedText, { ends, lines, line, start }: LinePlaces): number {
    const place = this.#place;
    place[0] = lines;
    place[1] = line;
    place[2] = start;
    this.#text = text;
    return this.#readLines(text.body, text.table, ends, place, this.#words);
  }

  /** Whether the line of the row with this index is as the gateway writes it. */
  isWritten(index: number): boolean {
    return (this.#words[index * Line.Words]! & LineFlag.Written) !== 0;
  }

  /** Whether `fillRest` gives anything that is not empty. */
  hasWrites(index: number): boolean {
    return (this.#words[index * Line.Words]! & LineFlag.HasWrites) !== 0;
  }

  /** Whether the hash of its distinct id is known. */
  hasPlainId(index: number): boolean {
    return (this.#words[index * Line.Words]! & LineFlag.PlainId) !== 0;
  }

  /** A hash word of the line: `word` is one of the four in Line. */
  hashWord(index: number, word: number): number {
    return this.#signed[index * Line.Words + word]!;
  }

  /**
   * Fills the facts that every line is asked for. Of the written lines none may be left out. False:
   * its distinct id is blank; then the facts mean nothing.
   */
  fill(facts: EventFacts, index: number, storedAtMs: number): boolean {
    const at = index * Line.Words;
    const flags = this.#words[at]!;
    if ((flags & LineFlag.SameProject) === 0) this.#readProject(at);
    facts.projectId = this.#projectId;
    facts.kind = (flags >>> LineShift.Kind) as Kind;
    facts.personProfile = (flags & LineFlag.PersonProfile) !== 0;
    facts.special = this.#specialOf(flags, index);
    facts.distinctId =
      (flags & LineFlag.PlainId) !== 0
        ? this.#ids.textOf(this.#text.body, this.#signed, at)
        : this.#idText(index);
    if (facts.distinctId === "") return false;
    const receivedAtMs = boundReceivedMs(this.#doubles[(at + Line.ReceivedAt) / 2]!, storedAtMs);
    const sentMs =
      (flags & LineFlag.HasTime) !== 0
        ? this.#doubles[(at + Line.Time) / 2]!
        : this.#timestampMs(index);
    facts.receivedAtMs = receivedAtMs;
    facts.timeMs = boundTimeMs(sentMs, receivedAtMs);
    return true;
  }

  /** Fills the other facts of a line. */
  fillRest(facts: EventFacts, index: number): void {
    const { body, view, table } = this.#text;
    facts.body = body;
    facts.uuidBody = body;
    facts.uuidView = view;
    facts.uuidAt = this.#words[index * Line.Words + Line.UuidAt]!;
    fillSpans(facts, table, rowOf(index));
  }

  #readProject(at: number): void {
    const start = this.#words[at + Line.ProjectStart]!;
    const text = this.#text.body.toString("latin1", start, this.#words[at + Line.ProjectEnd]);
    // Who compares it with the one before is faster where it is the same string.
    if (text !== this.#projectId) this.#projectId = text;
  }

  #specialOf(flags: number, index: number): SpecialEvent {
    if ((flags & (LineFlag.EscapedEvent | LineFlag.Merge | LineFlag.Automatic)) === 0)
      return SpecialEvent.None;
    if ((flags & LineFlag.Merge) !== 0) return SpecialEvent.Merge;
    if ((flags & LineFlag.Automatic) !== 0) return SpecialEvent.Automatic;
    const { body, table } = this.#text;
    const row = rowOf(index);
    return specialEventOf(
      stringBeginning(body, table[row + Row.EventStart]!, table[row + Row.EventEnd]!),
    );
  }

  #idText(index: number): string {
    const { body, table } = this.#text;
    const row = rowOf(index);
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId);
    return idText(body, table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!, type);
  }

  #timestampMs(index: number): number {
    const { body, table } = this.#text;
    const row = rowOf(index);
    return timestampTokenMs(body, table[row + Row.TimestampStart]!, table[row + Row.TimestampEnd]!);
  }
}

function rowOf(index: number): number {
  return Header.Words + index * Row.Words;
}

function fillSpans(facts: EventFacts, table: Uint32Array, row: number): void {
  const types = table[row + Row.FieldTypes]!;
  fillSpan(
    facts.properties,
    typeAt(types, FieldShift.Properties),
    table,
    row + Row.PropertiesStart,
  );
  fillSpan(facts.set, typeAt(types, FieldShift.Set), table, row + Row.SetStart);
  fillSpan(facts.setOnce, typeAt(types, FieldShift.SetOnce), table, row + Row.SetOnceStart);
  facts.groupsType = typeAt(table[row + Row.PropertyTypes]!, PropertyShift.Groups);
  if (!hasExtra(table, row)) {
    facts.unset.type = TokenType.Absent;
    facts.nestedSet.type = TokenType.Absent;
    facts.nestedSetOnce.type = TokenType.Absent;
    facts.nestedUnset.type = TokenType.Absent;
    return;
  }
  const extra = extraOf(table, row);
  const more = table[extra + Extra.Types]!;
  fillSpan(facts.unset, typeAt(more, ExtraShift.Unset), table, extra + Extra.UnsetStart);
  fillSpan(
    facts.nestedSet,
    typeAt(more, ExtraShift.PropertiesSet),
    table,
    extra + Extra.PropertiesSetStart,
  );
  fillSpan(
    facts.nestedSetOnce,
    typeAt(more, ExtraShift.PropertiesSetOnce),
    table,
    extra + Extra.PropertiesSetOnceStart,
  );
  fillSpan(
    facts.nestedUnset,
    typeAt(more, ExtraShift.PropertiesUnset),
    table,
    extra + Extra.PropertiesUnsetStart,
  );
}

function fillSpan(span: Span, type: TokenType, table: Uint32Array, word: number): void {
  span.type = type;
  span.start = table[word]!;
  span.end = table[word + 1]!;
}
