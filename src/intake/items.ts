// The items of a body, one after another: judged by the rules, the good ones written into frames.
// Synchronous and shared: the verdict and the cursor serve whichever body is at hand, so a call
// must end before the next begins.

import { Buffer } from "node:buffer";
import { judgeItem } from "../events/guards.ts";
import { type ItemView, isPlain } from "../events/item-view.ts";
import { mergedBytesMax, namesBytesMax, PersonFields } from "../events/person-fields.ts";
import type { RecordWriter } from "../events/record.ts";
import { judgeLengths } from "../events/text-length.ts";
import {
  invalidSentAtWarning,
  invalidUtf8Warning,
  isStorable,
  type RequestFacts,
  refuse,
  Verdict,
} from "../events/verdict.ts";
import { Header, Row, type Scanner, TokenType } from "../scan/table.ts";
import { dropDetail, errorHint, unsaid } from "./details/item-details.ts";
import type { Slips } from "./details/slips.ts";
import { type Cursor, OutOfMemoryError, PlainForm } from "./plain-form.ts";
import { hasPlaceIn } from "./repaired-body.ts";
import type { Work } from "./work.ts";

/** What of a request's work its items are judged by, and where their lines go. */
export type Job = RequestFacts &
  Pick<
    Work,
    | "body"
    | "malformed"
    | "scanner"
    | "hasInvalidSentAt"
    | "additions"
    | "tally"
    | "recordBytesMax"
    | "record"
    | "frames"
  >;

export interface ItemTakerOptions {
  /** Reads what was normalised, while another scanner still holds the table of the body. */
  readonly slowScanner: Scanner;
  readonly records: RecordWriter;
  readonly slips: Slips;
  /** Hears of an item that nothing it holds should have made throw; of each kind of bug once. */
  readonly onBug: (bug: unknown) => void;
}

/** Bugs told apart by their text; past so many nothing more is said. */
const bugsToldMax = 32;

export class ItemTaker {
  readonly #records: RecordWriter;
  readonly #slips: Slips;
  readonly #onBug: (bug: unknown) => void;
  readonly #plainForm: PlainForm;
  readonly #personFields: PersonFields;
  readonly #verdict = new Verdict();
  readonly #cursor: Cursor;
  readonly #bugsTold = new Set<string>();

  constructor({ slowScanner, records, slips, onBug }: ItemTakerOptions) {
    this.#records = records;
    this.#slips = slips;
    this.#onBug = onBug;
    this.#plainForm = new PlainForm(slowScanner);
    this.#personFields = new PersonFields(this.#plainForm.write);
    this.#cursor = { body: Buffer.alloc(0), table: slowScanner.table, row: 0 };
  }

  /**
   * Takes the items whose rows are from `start` up to `end`, counted from the table's first row.
   */
  takeRows(job: Job, start: number, end: number): void {
    const cursor = this.#cursor;
    cursor.body = job.body;
    cursor.table = job.scanner.table;
    const firstItem = cursor.table[Header.FirstItem]!;
    for (let row = start; row < end; row++) {
      cursor.row = Header.Words + row * Row.Words;
      this.#takeItem(job, firstItem + row);
    }
  }

  #takeItem(job: Job, index: number): void {
    const verdict = this.#verdict;
    let item: ItemView;
    let bytes = 0;
    try {
      item = this.#judge(job);
      if (isStorable(verdict)) bytes = this.#records.measure(item, verdict, job.record);
    } catch (bug) {
      if (bug instanceof OutOfMemoryError) throw bug;
      // One event's bug must not cost its neighbours: a 503 for the batch would, at every retry.
      this.#tellOnce(bug);
      const detail = "This event alone made the gateway fail: please report it";
      job.tally.fail(index, "unreadable_event", { detail, hint: "" });
      return;
    }
    if (!isStorable(verdict)) this.#leaveOut(job, index, item);
    else if (bytes > job.recordBytesMax) {
      const detail = `The record takes ${bytes} bytes, the store takes ${job.recordBytesMax}`;
      job.tally.fail(index, "event_too_large", { detail, hint: "" });
    } else this.#store(job, index, item, bytes);
  }

  /**
   * Fills the verdict; answers the view to write the record from: the item in the body, or its
   * plain form.
   */
  #judge(job: Job): ItemView {
    const verdict = this.#verdict;
    const cursor = this.#cursor;
    const plain = isPlain(cursor) ? cursor : this.#plainForm.of(cursor, verdict, job.tally);
    const item =
      job.additions === undefined || plain === undefined
        ? plain
        : this.#plainForm.withAdditions(plain, job.additions, verdict);
    if (item === undefined) return cursor;
    judgeItem(item, job, verdict);
    if (job.additions !== undefined && isStorable(verdict)) judgeLengths(item, verdict);
    if (
      verdict.hasPersonFields &&
      isStorable(verdict) &&
      !this.#personFields.gather(item, verdict)
    ) {
      const detail = `More than ${mergedBytesMax} bytes of $set or $set_once, or ${namesBytesMax} of $unset, would have to be merged`;
      refuse(verdict, "event_too_large", detail);
    }
    return item;
  }

  #leaveOut({ tally }: Job, index: number, item: ItemView): void {
    const { drop, error, detail } = this.#verdict;
    const slips = this.#slips;
    if (drop === "removed") tally.remove(index);
    else if (drop !== undefined) {
      const said = tally.namesDrops
        ? dropDetail(drop, item, { slips, isBatch: this.#isBatch() })
        : unsaid;
      tally.drop(index, drop, said);
    } else if (error !== undefined) {
      const hint = tally.namesErrors ? errorHint(error, item, slips) : "";
      tally.fail(index, error, { detail, hint });
    }
  }

  #store(job: Job, index: number, item: ItemView, bytes: number): void {
    const verdict = this.#verdict;
    const sink = job.frames.sinkFor(bytes, index, verdict.uuid !== "new");
    this.#records.write(item, verdict, job.record, sink);
    if (job.malformed !== undefined && this.#hasMalformed(job.malformed))
      verdict.warnings |= invalidUtf8Warning;
    // It is about the request, and said once.
    if (job.hasInvalidSentAt && job.tally.accepted === 0) verdict.warnings |= invalidSentAtWarning;
    job.tally.store(index, verdict);
  }

  #hasMalformed(malformed: Uint32Array): boolean {
    const { table, row } = this.#cursor;
    return hasPlaceIn(malformed, table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!);
  }

  /**
   * Whether the item is one of several. The body's table says so, because an item in plain form is
   * in a batch of its own.
   */
  #isBatch(): boolean {
    const { table } = this.#cursor;
    return (
      table[Header.BatchType] !== TokenType.Absent || table[Header.RootType] === TokenType.Array
    );
  }

  #tellOnce(bug: unknown): void {
    const text = String(bug);
    if (this.#bugsTold.size >= bugsToldMax || this.#bugsTold.has(text)) return;
    this.#bugsTold.add(text);
    this.#onBug(bug);
  }
}
