// How much work a body makes, and how much of it is done at a time. What is large is decided here:
// by the work, not by the bytes.

import { isPlain } from "../events/item-view.ts";
import { mayNeedMerging } from "../events/person-fields.ts";
import { recordOverheadBytesMax } from "../events/record.ts";
import { Header, Row } from "../scan/table.ts";

/**
 * Up to here a body of few events goes through at once, however much others did in the same turn,
 * and nobody asks how long it took: 0.05 ms at most.
 */
export const littleBytesMax = 2_048;
/** More of them, of which 2 KiB hold up to 70, take as long as a body of ten times the bytes. */
export const fewEventsMax = 8;
/**
 * A longer body is scanned in the thread pool. On the event loop so many bytes take 0.8 ms, if they
 * are made to take long.
 */
export const scannedAtOnceBytesMax = 131_072;
/**
 * What is placed in the turn in which it came, by `placingBytesOf`: some 0.4 ms. More goes in slices
 * of as much.
 */
export const placedAtOnceBytesMax = 524_288;
/** Rows of the table that serves the bodies placed at once. */
export const rowsAtOnceMax = placedAtOnceBytesMax / recordOverheadBytesMax;
/** A byte on the slow path takes 5 to 8 ns: as long as so many that are copied. */
const slowPathFactor = 8;

/**
 * What placing a body takes at most, in bytes copied, if its items are plain. `isSlow`: each item is
 * written anew, be it plain or not.
 */
export function placingBytesOf(bytes: number, events: number, isSlow: boolean): number {
  return bytes * (isSlow ? 1 + slowPathFactor : 1) + events * recordOverheadBytesMax;
}

/** How far a slice goes from row `start`, by at least one row. `isSlow`: as above. */
export function endOfSlice(
  table: Uint32Array,
  start: number,
  { rows, isSlow }: { rows: number; isSlow: boolean },
): number {
  let end = start;
  for (let bytes = 0; end < rows && bytes < placedAtOnceBytesMax; end++) {
    const row = Header.Words + end * Row.Words;
    const itemBytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    const item = { table, row };
    const isQuick = !isSlow && isPlain(item) && !mayNeedMerging(item);
    bytes += placingBytesOf(isQuick ? itemBytes : itemBytes * slowPathFactor, 1, false);
  }
  return end;
}
