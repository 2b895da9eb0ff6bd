// Estimates how much work a body causes, and limits how much of it is done at a time. This work,
// not the bytes, decides whether a body is large.

import { isPlain } from "../../records/item-view.ts";
import { mayNeedMerging } from "../../records/person-fields.ts";
import {
  recordOverheadBytesMax,
  recordsBytesPlanned,
  sharedHistoryBytesMax,
} from "../../records/record.ts";
import { Header, Row } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Work } from "./work.ts";

/**
 * Up to this length a body of few events is processed at once, regardless of earlier work in the
 * same turn. Its time, 0.05 ms at most, is not measured.
 */
export const littleBytesMax = 2_048;
/**
 * Maximum number of events that count as few. 2 KiB may contain up to 70, which take as long as a
 * body of ten times the bytes.
 */
export const fewEventsMax = 8;
/**
 * A body longer than this is scanned in the thread pool. On the event loop a scan of this many
 * bytes takes 0.8 ms in the worst case.
 */
export const scannedAtOnceBytesMax = 131_072;
/**
 * Maximum work, as counted by `placingBytesOf`, that is placed in the turn in which the body
 * arrived: some 0.4 ms. A body of more work is placed in slices of about this size.
 */
export const placedAtOnceBytesMax = 524_288;
/** Rows of the table for the bodies that are placed at once. */
export const rowsAtOnceMax = placedAtOnceBytesMax / recordOverheadBytesMax;
/** A byte on the slow path takes 5 to 8 ns, as long as copying this many bytes. */
const slowPathFactor = 8;

/**
 * Returns an upper bound of the work to place a body of plain items, in bytes copied. `isSlow`:
 * each item is rewritten, whether it is plain or not.
 */
export function placingBytesOf(bytes: number, events: number, isSlow: boolean): number {
  return bytes * (isSlow ? 1 + slowPathFactor : 1) + events * recordOverheadBytesMax;
}

/**
 * Returns the row where a slice from row `start` ends, at least one row later. `isSlow`: as above.
 */
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

/**
 * Whether the lines of the request may not fit into one frame: then it gets its own frames. Its
 * lane and body alone decide, so a retry of it is placed the same way.
 */
export function fillsFrames(
  { lane, body, cost }: Pick<Work, "lane" | "body" | "cost">,
  { frameBytesMax }: Pick<Publisher, "frameBytesMax">,
): boolean {
  const most = lane === "live" ? frameBytesMax : Math.min(frameBytesMax, sharedHistoryBytesMax);
  return recordsBytesPlanned(body.length, cost.events) > most;
}
