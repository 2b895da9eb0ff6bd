// Normalises an item that the table of the body cannot describe, or adds the members of the request
// to its properties. The result is scanned again. The returned view is valid only until the next
// call, which reuses its memory.

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
  type Additions,
  additionsTo,
  bytesWithAdditions,
  type Ignored,
  takesAdditions,
  writeWithAdditions,
} from "./v1/additions.ts";

/** Normalising an item of this size blocks the event loop for 8 ms. */
export const slowItemBytesMax = 1_048_576;
/** The item is put into a batch, because an item with a member `batch` would count as a batch. */
const itemPrefix = '{"batch":[';
const itemSuffix = "]}";
const slowBufferBytesMax = itemPrefix.length + slowItemBytesMax + itemSuffix.length;

/** This error fails the whole request, so that the client retries it. */
export class OutOfMemoryError extends Error {}

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

  /** `scanner` is used only for single items, because each item overwrites its table. */
  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#cursor = { body: Buffer.alloc(0), table: scanner.table, row: Header.Words };
  }

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
      if ((flags & ~(ItemFlag.EscapedInnerKey | ItemFlag.DuplicateKey)) === 0) return item;
      const detail = `The event must be normalised, but exceeds the maximum of ${slowItemBytesMax} bytes for such events`;
      return refuse(verdict, "event_too_large", detail);
    }
    return this.#rescanned({ body, start, end });
  }

  /**
   * Returns the item with the added members. Afterwards, `ignored` contains the invalid values of
   * the item. On failure, sets the error in the verdict and returns undefined.
   */
  withAdditions(item: ItemView, added: Additions, verdict: Verdict): ItemView | undefined {
    this.ignored.replaced = "";
    const additions = additionsTo(item, added, this.ignored);
    if (additions === "" || !takesAdditions(item)) return item;
    const bytes = bytesWithAdditions(item, additions);
    if (bytes > slowItemBytesMax) {
      const detail = `The event, including the members that are added to its properties, exceeds ${slowItemBytesMax} bytes`;
      return refuse(verdict, "event_too_large", detail);
    }
    if (this.#addedTo.length < bytes)
      this.#addedTo = Buffer.allocUnsafeSlow(Math.min(slowItemBytesMax, 2 * bytes));
    const end = writeWithAdditions(item, additions, this.#addedTo);
    return this.#rescanned({ body: this.#addedTo, start: 0, end });
  }

  readonly write: WritePlainForm = ({ body, start, end }, target, at) => {
    const written = this.#scanner.normalise(body, start, end, target, at);
    if (written === NotNormal.OutOfMemory)
      throw new OutOfMemoryError("cannot normalise an event: no memory");
    if (written < 0) throw new Error("cannot normalise an event: the scanned text is not JSON");
    return written;
  };

  #rescanned(text: JsonText): ItemView {
    const room = this.#roomFor(text.end - text.start);
    const itemEnd = itemPrefix.length + this.write(text, room, itemPrefix.length);
    const end = itemEnd + room.write(itemSuffix, itemEnd, "latin1");
    this.#cursor.body = room.subarray(0, end);
    const status = this.#scanner.scan(this.#cursor.body);
    if (status === ScanStatus.OutOfMemory)
      throw new OutOfMemoryError("cannot scan a normalised event: no memory");
    if (status !== ScanStatus.Ok)
      throw new Error(`cannot scan a normalised event: status ${status}`);
    return this.#cursor;
  }

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
