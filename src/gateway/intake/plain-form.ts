// Makes the plain form of an item that the body's table cannot describe: normalises it, or adds the
// request's members to its properties, and scans the result. Synchronous, in memory that is used
// again for the next item, so a view of a plain form is valid until the next call.

import { Buffer } from "node:buffer";
import { type ItemView, itemFlags } from "../../records/item-view.ts";
import type { JsonText, WritePlainForm } from "../../records/person-fields.ts";
import {
  depthMax,
  Header,
  ItemFlag,
  NotNormal,
  numberDigitsMax,
  Row,
  type Scanner,
  ScanStatus,
} from "../../records/table.ts";
import { refuse, type Verdict } from "../../records/verdict.ts";
import type { Tally } from "./tally.ts";
import {
  additionsTo,
  bytesWithAdditions,
  type Ignored,
  takesAdditions,
  writeWithAdditions,
} from "./v1/additions.ts";

/**
 * The largest item that is normalised. It is done in one go on the event loop, and takes up to 8 ms
 * for an item of as many tokens as fit, 1 ms for one of text. SDKs cut their events far below this.
 */
export const slowItemBytesMax = 1_048_576;
/**
 * An item is scanned again as a batch of one. Scanned alone, an item with a member `batch` would be
 * taken for an envelope.
 */
const itemPrefix = '{"batch":[';
const itemSuffix = "]}";
const slowBufferBytesMax = itemPrefix.length + slowItemBytesMax + itemSuffix.length;

/**
 * There is no memory for an item now. That is no error of the item, so it does not fail alone: the
 * client is to retry the whole request.
 */
export class OutOfMemoryError extends Error {}

/** An ItemView that is pointed at one item after another. */
export interface Cursor extends ItemView {
  body: Buffer;
  table: Uint32Array;
  row: number;
}

export class PlainForm {
  readonly #scanner: Scanner;
  readonly #cursor: Cursor;
  #text = Buffer.alloc(0);
  #addedTo = Buffer.alloc(0);
  readonly ignored: Ignored = { replaced: "" };

  /** The scanner's table is overwritten with each item that is scanned again. */
  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#cursor = { body: Buffer.alloc(0), table: scanner.table, row: Header.Words };
  }

  /** The item in plain form; or undefined, and then the verdict holds the error of the item. */
  of(item: ItemView, verdict: Verdict, tally: Tally): ItemView | undefined {
    const flags = itemFlags(item);
    if ((flags & ItemFlag.TooDeep) !== 0) {
      const detail = `Objects and arrays may be ${depthMax} deep, the event counted`;
      return refuse(verdict, "too_deep", detail);
    }
    if ((flags & ItemFlag.LongNumber) !== 0) {
      return refuse(verdict, "number_too_long", `A number may have ${numberDigitsMax} digits`);
    }
    tally.slowPathItems++;
    const { body, table, row } = item;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    if (end - start > slowItemBytesMax) {
      // It is not plain only because its distinct id is an object or array, of which only the
      // beginning is read in any case, or because of names that mean the same as they are.
      if ((flags & ~(ItemFlag.EscapedInnerKey | ItemFlag.DuplicateKey)) === 0) return item;
      const detail = `Not in plain form, and larger than the ${slowItemBytesMax} bytes that are normalised`;
      return refuse(verdict, "event_too_large", detail);
    }
    return this.#rescanned({ body, start, end });
  }

  /**
   * The item with the request's members added to its properties; undefined as in `of`. `ignored`
   * has what the item sent for them and is wrong.
   */
  withAdditions(item: ItemView, members: string, verdict: Verdict): ItemView | undefined {
    this.ignored.replaced = "";
    const additions = additionsTo(item, members, this.ignored);
    if (additions === "" || !takesAdditions(item)) return item;
    const bytes = bytesWithAdditions(item, additions);
    if (bytes > slowItemBytesMax) {
      const detail = `An event may have ${slowItemBytesMax} bytes here, with what is added to its properties`;
      return refuse(verdict, "event_too_large", detail);
    }
    if (this.#addedTo.length < bytes)
      this.#addedTo = Buffer.allocUnsafeSlow(Math.min(slowItemBytesMax, 2 * bytes));
    const end = writeWithAdditions(item, additions, this.#addedTo);
    return this.#rescanned({ body: this.#addedTo, start: 0, end });
  }

  /** Writes the plain form of a text to the target from `at` on, and returns its bytes. */
  readonly write: WritePlainForm = ({ body, start, end }, target, at) => {
    const written = this.#scanner.normalise(body, start, end, target, at);
    if (written === NotNormal.OutOfMemory)
      throw new OutOfMemoryError("Normalising an event: no memory");
    if (written < 0) throw new Error("Normalising an event: what was scanned is no JSON");
    return written;
  };

  #rescanned(text: JsonText): ItemView {
    const room = this.#roomFor(text.end - text.start);
    const itemEnd = itemPrefix.length + this.write(text, room, itemPrefix.length);
    const end = itemEnd + room.write(itemSuffix, itemEnd, "latin1");
    this.#cursor.body = room.subarray(0, end);
    const status = this.#scanner.scan(this.#cursor.body);
    if (status === ScanStatus.OutOfMemory)
      throw new OutOfMemoryError("Scanning a normalised event: no memory");
    if (status !== ScanStatus.Ok)
      throw new Error(`Scanning a normalised event: it has status ${status}`);
    return this.#cursor;
  }

  /** Memory for one item in plain form, with the prefix and suffix that make a batch of it. */
  #roomFor(itemBytes: number): Buffer {
    const bytes = itemPrefix.length + itemBytes + itemSuffix.length;
    if (this.#text.length < bytes) {
      const roomBytes = Math.min(slowBufferBytesMax, Math.max(bytes, 2 * this.#text.length));
      this.#text = Buffer.allocUnsafeSlow(roomBytes);
      this.#text.write(itemPrefix, 0, "latin1");
    }
    return this.#text;
  }
}
