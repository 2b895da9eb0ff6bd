// The items of a body, one after another: judged by the rules, the good ones written into frames.
// Synchronous and shared: the verdict and the cursors serve whichever body is at hand, so a call
// must end before the next begins.

import { Buffer } from "node:buffer";
import type { ItemErrorCode } from "../base/errors.ts";
import { distinctIdCharactersMax } from "../events/distinct-id.ts";
import { judgeItem } from "../events/guards.ts";
import { type ItemView, isPlain, itemFlags } from "../events/item-view.ts";
import {
  type JsonText,
  mergedBytesMax,
  namesBytesMax,
  PersonFields,
} from "../events/person-fields.ts";
import type { RecordWriter } from "../events/record.ts";
import { eventNameCharactersMax, isNameTooLong } from "../events/text-length.ts";
import {
  invalidSentAtWarning,
  invalidUtf8Warning,
  type RequestFacts,
  refuse,
  Verdict,
} from "../events/verdict.ts";
import {
  depthMax,
  Header,
  ItemFlag,
  NotNormal,
  numberDigitsMax,
  Row,
  type Scanner,
  ScanStatus,
  TokenType,
} from "../scan/table.ts";
import { dropDetail, errorHint, unsaid } from "./details/item-details.ts";
import type { Slips } from "./details/slips.ts";
import { hasPlaceIn } from "./repaired-body.ts";
import type { Tally } from "./tally.ts";
import {
  additionsTo,
  bytesWithAdditions,
  takesAdditions,
  writeWithAdditions,
} from "./v1/additions.ts";
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
  /**
   * Reads what the slow path has normalised, while another scanner still holds the table of the
   * body.
   */
  readonly slowScanner: Scanner;
  readonly records: RecordWriter;
  readonly slips: Slips;
  /** Hears of an item that nothing it holds should have made throw; of each kind of bug once. */
  readonly onBug: (bug: unknown) => void;
}

export interface ItemTaker {
  /**
   * Takes the items whose rows are from `start` up to `end`, counted from the table's first row.
   */
  takeRows(job: Job, start: number, end: number): void;
}

/** An ItemView that is pointed at one item after another. */
interface Cursor extends ItemView {
  body: Buffer;
  table: Uint32Array;
  row: number;
}

/**
 * Largest item that is normalised, which is done at once, on the event loop: up to 8 ms for the
 * most tokens that fit, 1 ms where it is text. SDKs cut their events far below.
 */
const slowItemBytesMax = 1_048_576;
/**
 * An item is scanned again as a batch of one: alone, one that holds a `batch` would be taken for an
 * envelope.
 */
const itemPrefix = '{"batch":[';
const itemSuffix = "]}";
const slowBufferBytesMax = itemPrefix.length + slowItemBytesMax + itemSuffix.length;

/** Bugs told apart by their text; past so many nothing more is said. */
const bugsToldMax = 32;

/** No memory for the item now: not its fault, so the whole request is to be sent again. */
class OutOfMemoryError extends Error {}

export function createItemTaker({
  slowScanner,
  records,
  slips,
  onBug,
}: ItemTakerOptions): ItemTaker {
  const verdict = new Verdict();
  const personFields = new PersonFields(plainForm);
  const told = new Set<string>();
  const cursor: Cursor = { body: Buffer.alloc(0), table: slowScanner.table, row: 0 };
  let plainText = Buffer.alloc(0);
  let addedTo = Buffer.alloc(0);
  const slowCursor: Cursor = { body: Buffer.alloc(0), table: slowScanner.table, row: Header.Words };

  function takeRows(job: Job, start: number, end: number): void {
    cursor.body = job.body;
    cursor.table = job.scanner.table;
    const firstItem = cursor.table[Header.FirstItem]!;
    for (let row = start; row < end; row++) {
      cursor.row = Header.Words + row * Row.Words;
      takeItem(job, firstItem + row);
    }
  }

  function takeItem(job: Job, index: number): void {
    const { tally, record, frames } = job;
    let item: ItemView;
    let bytes = 0;
    try {
      item = judge(job);
      if (isStorable()) bytes = records.measure(item, verdict, record);
    } catch (bug) {
      if (bug instanceof OutOfMemoryError) throw bug;
      // One event's bug must not cost its neighbours: a 503 for the batch would, at every retry.
      tellOnce(bug);
      const detail = "This event alone made the gateway fail: please report it";
      tally.fail(index, "unreadable_event", { detail, hint: "" });
      return;
    }
    if (verdict.drop === "removed") {
      tally.remove(index);
      return;
    }
    if (verdict.drop !== undefined) {
      tally.drop(
        index,
        verdict.drop,
        tally.namesDrops ? dropDetail(verdict.drop, item, { slips, isBatch: isBatch() }) : unsaid,
      );
      return;
    }
    if (verdict.error !== undefined) {
      const hint = tally.namesErrors ? errorHint(verdict.error, item, slips) : "";
      tally.fail(index, verdict.error, { detail: verdict.detail, hint });
      return;
    }
    if (bytes > job.recordBytesMax) {
      const detail = `The record takes ${bytes} bytes, the store takes ${job.recordBytesMax}`;
      tally.fail(index, "event_too_large", { detail, hint: "" });
      return;
    }
    records.write(item, verdict, record, frames.sinkFor(bytes, index, verdict.uuid !== "new"));
    if (job.malformed !== undefined && hasMalformed(job.malformed))
      verdict.warnings |= invalidUtf8Warning;
    // It is about the request, and said once.
    if (job.hasInvalidSentAt && tally.accepted === 0) verdict.warnings |= invalidSentAtWarning;
    tally.store(index, verdict);
  }

  /**
   * Fills the verdict; answers the view to write the record from: the item in the body, or its
   * normalised form.
   */
  function judge(job: Job): ItemView {
    const plain = isPlain(cursor) ? cursor : normalised(cursor, job.tally);
    const item =
      job.additions === undefined || plain === undefined
        ? plain
        : withAdditions(plain, job.additions);
    if (item === undefined) return cursor;
    judgeItem(item, job, verdict);
    if (job.additions !== undefined && isStorable()) judgeLengths(item);
    if (verdict.hasPersonFields && isStorable() && !personFields.gather(item, verdict)) {
      refused(
        "event_too_large",
        `More than ${mergedBytesMax} bytes of $set or $set_once, or ${namesBytesMax} of $unset, would have to be merged`,
      );
    }
    return item;
  }

  function isStorable(): boolean {
    return verdict.drop === undefined && verdict.error === undefined;
  }

  /** The item in plain form, or undefined and the verdict says why there is none. */
  function normalised({ body, table, row }: ItemView, tally: Tally): ItemView | undefined {
    const flags = itemFlags(cursor);
    if ((flags & ItemFlag.TooDeep) !== 0) {
      return refused("too_deep", `Objects and arrays may be ${depthMax} deep, the event counted`);
    }
    if ((flags & ItemFlag.LongNumber) !== 0) {
      return refused("number_too_long", `A number may have ${numberDigitsMax} digits`);
    }
    tally.slowPathItems++;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    if (end - start > slowItemBytesMax) {
      // Only its distinct id is unusual, and of that the beginning is read in any case.
      if (flags === 0) return cursor;
      return refused(
        "event_too_large",
        `Not in plain form, and larger than the ${slowItemBytesMax} bytes that are normalised`,
      );
    }
    return rescanned({ body, start, end });
  }

  /** The item with what belongs into its properties, in plain form. */
  function withAdditions(item: ItemView, lib: string): ItemView | undefined {
    const additions = additionsTo(item, lib);
    if (additions === undefined) {
      return refused(
        "invalid_options",
        "options must be an object of known types, session_id and window_id strings",
      );
    }
    if (additions === "" || !takesAdditions(item)) return item;
    const bytes = bytesWithAdditions(item, additions);
    if (bytes > slowItemBytesMax) {
      return refused(
        "event_too_large",
        `An event may have ${slowItemBytesMax} bytes here, with what is added to its properties`,
      );
    }
    if (addedTo.length < bytes)
      addedTo = Buffer.allocUnsafeSlow(Math.min(slowItemBytesMax, 2 * bytes));
    return rescanned({
      body: addedTo,
      start: 0,
      end: writeWithAdditions(item, additions, addedTo),
    });
  }

  function judgeLengths(item: ItemView): void {
    if (verdict.distinctIdText !== undefined && verdict.distinctIdCut) {
      refused(
        "distinct_id_too_long",
        `A distinct id may have ${distinctIdCharactersMax} characters`,
      );
    } else if (isNameTooLong(item)) {
      refused(
        "event_name_too_long",
        `The name of an event may have ${eventNameCharactersMax} characters`,
      );
    }
  }

  /** The plain form of an item, in memory that is used again for the next. */
  function rescanned(text: JsonText): ItemView {
    const room = plainTextIn(text.end - text.start);
    const itemEnd = itemPrefix.length + plainForm(text, room, itemPrefix.length);
    slowCursor.body = room.subarray(0, itemEnd + room.write(itemSuffix, itemEnd, "latin1"));
    const status = slowScanner.scan(slowCursor.body);
    if (status === ScanStatus.OutOfMemory)
      throw new OutOfMemoryError("Scanning a normalised event: no memory");
    if (status !== ScanStatus.Ok)
      throw new Error(`Scanning a normalised event: it has status ${status}`);
    return slowCursor;
  }

  /** Writes it to the target from `at` on; answers how many bytes it takes. */
  function plainForm({ body, start, end }: JsonText, target: Buffer, at: number): number {
    const written = slowScanner.normalise(body, start, end, target, at);
    if (written === NotNormal.OutOfMemory)
      throw new OutOfMemoryError("Normalising an event: no memory");
    if (written < 0) throw new Error("Normalising an event: what was scanned is no JSON");
    return written;
  }

  /** Memory for one item in plain form and what makes a batch of it, used again for the next. */
  function plainTextIn(itemBytes: number): Buffer {
    const bytes = itemPrefix.length + itemBytes + itemSuffix.length;
    if (plainText.length < bytes) {
      plainText = Buffer.allocUnsafeSlow(
        Math.min(slowBufferBytesMax, Math.max(bytes, 2 * plainText.length)),
      );
      plainText.write(itemPrefix, 0, "latin1");
    }
    return plainText;
  }

  function hasMalformed(malformed: Uint32Array): boolean {
    const { table, row } = cursor;
    return hasPlaceIn(malformed, table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!);
  }

  /**
   * The item is one of several, or might be. Told by the body's table: what was normalised is in a
   * batch of its own.
   */
  function isBatch(): boolean {
    const { table } = cursor;
    return (
      table[Header.BatchType] !== TokenType.Absent || table[Header.RootType] === TokenType.Array
    );
  }

  function tellOnce(bug: unknown): void {
    const text = String(bug);
    if (told.size >= bugsToldMax || told.has(text)) return;
    told.add(text);
    onBug(bug);
  }

  /** There is no view of the item to store. */
  function refused(code: ItemErrorCode, detail: string): undefined {
    refuse(verdict, code, detail);
  }

  return { takeRows };
}
