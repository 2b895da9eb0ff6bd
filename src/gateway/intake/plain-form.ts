// Creates the plain form of an item that the body's table cannot describe: normalises the item, or
// adds the request's members to its properties, and scans the result. Synchronous. A view of a
// plain form is valid until the next call, because its memory is reused for the next item.

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
 * Maximum bytes of an item that is normalised. Such an item blocks the event loop for up to 8 ms if
 * it consists of tokens, and 1 ms if it is text. SDKs limit their events far below this.
 */
export const slowItemBytesMax = 1_048_576;
/**
 * The text before an item that is scanned again, as a batch of one. If it were scanned alone, an
 * item with a member `batch` would be mistaken for an envelope.
 */
const itemPrefix = '{"batch":[';
const itemSuffix = "]}";
const slowBufferBytesMax = itemPrefix.length + slowItemBytesMax + itemSuffix.length;

/**
 * The error of missing memory for an item. The whole request fails, so that the client retries it.
 */
export class OutOfMemoryError extends Error {}

/** An ItemView that moves from item to item. */
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

  /**
   * Creates a plain form. The table of the scanner is overwritten by each item that is scanned
   * again.
   */
  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#cursor = { body: Buffer.alloc(0), table: scanner.table, row: Header.Words };
  }

  /**
   * Returns the item in plain form. If that fails, returns undefined and sets the item's error in
   * the verdict.
   */
  of(item: ItemView, verdict: Verdict, tally: Tally): ItemView | undefined {
    const flags = itemFlags(item);
    if ((flags & ItemFlag.TooDeep) !== 0) {
      const detail = `Objects and arrays may be nested ${depthMax} levels deep, including the event itself`;
      return refuse(verdict, "too_deep", detail);
    }
    if ((flags & ItemFlag.LongNumber) !== 0) {
      return refuse(
        verdict,
        "number_too_long",
        `A number may have at most ${numberDigitsMax} digits`,
      );
    }
    tally.slowPathItems++;
    const { body, table, row } = item;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    if (end - start > slowItemBytesMax) {
      // The item is not plain only because its distinct id is an object or array, whose beginning
      // alone is read in any case, or because of escaped or repeated names that can be read
      // unchanged.
      if ((flags & ~(ItemFlag.EscapedInnerKey | ItemFlag.DuplicateKey)) === 0) return item;
      const detail = `The event must be normalised, and is larger than the maximum of ${slowItemBytesMax} bytes for such events`;
      return refuse(verdict, "event_too_large", detail);
    }
    return this.#rescanned({ body, start, end });
  }

  /**
   * Returns the item with the request's members added to its properties; undefined as in `of`.
   * `ignored` receives the item's invalid values for those members.
   */
  withAdditions(item: ItemView, members: string, verdict: Verdict): ItemView | undefined {
    this.ignored.replaced = "";
    const additions = additionsTo(item, members, this.ignored);
    if (additions === "" || !takesAdditions(item)) return item;
    const bytes = bytesWithAdditions(item, additions);
    if (bytes > slowItemBytesMax) {
      const detail = `The event exceeds ${slowItemBytesMax} bytes, including the members that are added to its properties`;
      return refuse(verdict, "event_too_large", detail);
    }
    if (this.#addedTo.length < bytes)
      this.#addedTo = Buffer.allocUnsafeSlow(Math.min(slowItemBytesMax, 2 * bytes));
    const end = writeWithAdditions(item, additions, this.#addedTo);
    return this.#rescanned({ body: this.#addedTo, start: 0, end });
  }

  /**
   * Writes the plain form of a text to the target from `at` on, and returns the number of bytes
   * written.
   */
  readonly write: WritePlainForm = ({ body, start, end }, target, at) => {
    const written = this.#scanner.normalise(body, start, end, target, at);
    if (written === NotNormal.OutOfMemory)
      throw new OutOfMemoryError("Normalising an event: no memory");
    if (written < 0) throw new Error("Normalising an event: the scanned text is not JSON");
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

  /** Returns memory for one item in plain form, with the prefix and suffix that form a batch. */
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
