// Reads the uuids of a v1 request. If two events have the same uuid, or an event has none, the
// whole request is rejected. Only the nil UUID and the max UUID may be repeated, because clients
// send them for events without a uuid.

import type { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { Ascii } from "../../../platform/base/ascii.ts";
import type { Problem } from "../../../platform/base/errors.ts";
import { halfSipHash } from "../../../platform/base/half-sip-hash.ts";
import { typeAt } from "../../../records/item-view.ts";
import { FieldShift, Header, Row, TokenType } from "../../../records/table.ts";
import { hexDigits, UuidForm, unescapedUuid, uuidForm } from "../../../records/uuid.ts";
import { invalidPayload } from "../envelope.ts";
import type { LoopShare } from "../loop-share.ts";
import type { Work } from "../work.ts";

const wordsPerUuid = 4;

export class UuidList {
  /** Two lists of indexes: the events with the nil UUID, and the events with the max UUID. */
  readonly blanks: readonly [number[], number[]] = [[], []];
  #length = 0;
  readonly #words: Uint32Array;
  /**
   * A hash table with open addressing. A used slot contains the index of a uuid plus 1, and a free
   * slot contains 0. At least half of the slots are free.
   */
  readonly #slots: Int32Array;
  readonly #slotShift: number;
  // Each list has a random secret key, so that no choice of uuids makes the table slow.
  readonly #key = randomFillSync(new Uint32Array(2));
  #probes = 0;

  constructor(capacity: number) {
    const slotBits = Math.max(4, 33 - Math.clz32(capacity));
    this.#words = new Uint32Array(capacity * wordsPerUuid);
    this.#slots = new Int32Array(2 ** slotBits);
    this.#slotShift = 32 - slotBits;
  }

  get length(): number {
    return this.#length;
  }

  get probes(): number {
    return this.#probes;
  }

  /**
   * Adds a uuid. Returns the index of an equal uuid that was added before. Returns -1 if there is
   * none, or for the nil UUID and the max UUID.
   */
  add(text: Buffer, start: number): number {
    const words = this.#words;
    const first = this.#length * wordsPerUuid;
    words[first] = hexWord(text, start, start + 4);
    words[first + 1] = hexWord(text, start + 9, start + 14);
    words[first + 2] = hexWord(text, start + 19, start + 24);
    words[first + 3] = hexWord(text, start + 28, start + 32);
    const blanks = this.#blanksOf(first);
    if (blanks !== undefined) {
      this.#probes++;
      blanks.push(this.#length++);
      return -1;
    }
    const mask = this.#slots.length - 1;
    for (let slot = this.#slotOf(first); ; slot = (slot + 1) & mask) {
      this.#probes++;
      const taken = this.#slots[slot]! - 1;
      if (taken < 0) {
        this.#slots[slot] = ++this.#length;
        return -1;
      }
      if (this.#areEqual(taken * wordsPerUuid, first)) return taken;
    }
  }

  #blanksOf(first: number): number[] | undefined {
    const words = this.#words;
    const word = words[first]!;
    if (word !== 0 && word !== 0xffff_ffff) return undefined;
    const isBlank =
      words[first + 1] === word && words[first + 2] === word && words[first + 3] === word;
    return isBlank ? this.blanks[word & 1] : undefined;
  }

  write(target: Buffer, at: number, index: number): void {
    let next = at;
    for (let digit = 0; digit < 32; digit++) {
      if (digit === 8 || digit === 12 || digit === 16 || digit === 20) target[next++] = Ascii.Minus;
      const word = this.#words[index * wordsPerUuid + (digit >> 3)]!;
      target[next++] = hexDigits[(word >>> (28 - 4 * (digit & 7))) & 0xf]!;
    }
  }

  #slotOf(first: number): number {
    const hash = halfSipHash(this.#key, this.#words, { start: first, count: wordsPerUuid });
    return hash >>> this.#slotShift;
  }

  #areEqual(one: number, other: number): boolean {
    const words = this.#words;
    for (let at = 0; at < wordsPerUuid; at++)
      if (words[one + at] !== words[other + at]) return false;
    return true;
  }
}

function hexWord(text: Buffer, start: number, secondStart: number): number {
  return ((fourDigits(text, start) << 16) | fourDigits(text, secondStart)) >>> 0;
}

function fourDigits(text: Buffer, start: number): number {
  let value = 0;
  for (let at = start; at < start + 4; at++) {
    const byte = text[at]!;
    // Letters of both cases have bit 6 (0x40) set. Their lowest four bits are their hexadecimal
    // value minus 9. This formula needs no branch, because the branch would be unpredictable.
    value = (value << 4) | ((byte & 0xf) + 9 * (byte >>> 6));
  }
  return value;
}

/** Examining this number of slots takes a quarter of a millisecond. */
const probesAtOnceMax = 512;

export function readUuids(work: Work): UuidList | Problem {
  const reader = new UuidReader(work);
  reader.read(0, work.rowCount, Number.POSITIVE_INFINITY);
  return reader.problem ?? reader.uuids;
}

export async function readUuidsInTurns(
  work: Work,
  share: LoopShare,
  refusal: () => Problem | undefined,
): Promise<UuidList | Problem> {
  const reader = new UuidReader(work);
  for (let rows = work.rowCount; rows > 0; rows = await work.nextRows()) {
    let next = 0;
    const slice = (): void => {
      reader.problem = refusal();
      if (reader.problem === undefined) next = reader.read(next, rows, probesAtOnceMax);
    };
    while (next < rows) {
      await share.slice(slice);
      if (reader.problem !== undefined) return reader.problem;
    }
  }
  if (work.table[Header.FirstItem] !== 0) await work.scanner.scanInBackground(work.body);
  return reader.uuids;
}

class UuidReader {
  readonly uuids: UuidList;
  problem: Problem | undefined = undefined;
  readonly #body: Buffer;
  readonly #table: Uint32Array;

  constructor({ body, table }: Work) {
    this.uuids = new UuidList(table[Header.ItemCount]!);
    this.#body = body;
    this.#table = table;
  }

  read(start: number, end: number, probesMax: number): number {
    const { uuids } = this;
    const probesEnd = uuids.probes + probesMax;
    let row = start;
    while (row < end && this.problem === undefined && uuids.probes < probesEnd) {
      this.#readRow(Header.Words + row * Row.Words);
      row++;
    }
    return row;
  }

  #readRow(row: number): void {
    const table = this.#table;
    const index = this.uuids.length;
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Uuid);
    const [start, end] = [table[row + Row.UuidStart]!, table[row + Row.UuidEnd]!];
    const body = this.#body;
    const isPlain =
      type === TokenType.PlainString && uuidForm(body, start + 1, end - 1) !== UuidForm.None;
    const unescaped =
      type === TokenType.EscapedString ? unescapedUuid(body, start, end) : undefined;
    if (!isPlain && unescaped === undefined) {
      const what =
        type === TokenType.Absent || type === TokenType.Null
          ? "has none"
          : "has a uuid that is not a UUID";
      this.problem = invalidPayload(`Each event must have a uuid, but batch[${index}] ${what}`);
      return;
    }
    const equal =
      unescaped === undefined ? this.uuids.add(body, start + 1) : this.uuids.add(unescaped, 0);
    if (equal >= 0)
      this.problem = invalidPayload(`batch[${index}] has the same uuid as batch[${equal}]`);
  }
}
