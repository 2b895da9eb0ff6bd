// Estimates how much work a body causes, and limits the work per event loop iteration.

import { isPlain } from "../../records/item-view.ts";
import { mayNeedMerging } from "../../records/person-fields.ts";
import {
  recordOverheadBytesMax,
  recordsBytesPlanned,
  sharedHistoryBytesMax,
} from "../../records/record.ts";
import { Header, Row } from "../../records/table.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import type { Publisher } from "../publish/port.ts";
import type { Work } from "./work.ts";

/** A body within both limits takes 0.05 ms, so it is processed immediately. */
export const littleBytesMax = 2_048;
export const fewEventsMax = 8;
/** Scanning this number of bytes takes at most 0.8 ms. */
export const scannedAtOnceBytesMax = 131_072;
/** The maximum work of one slice, as estimated by `placingBytesOf`. It takes 0.4 ms. */
export const placedAtOnceBytesMax = 524_288;
export const rowsAtOnceMax = placedAtOnceBytesMax / recordOverheadBytesMax;
/** Rewriting one byte takes 5 to 8 ns. This is as long as copying this number of bytes. */
const slowPathFactor = 8;

/**
 * Returns an upper bound of the work, measured in copied bytes. `isSlow` is true if the items must
 * be rewritten.
 */
export function placingBytesOf(bytes: number, events: number, isSlow: boolean): number {
  return bytes * (isSlow ? 1 + slowPathFactor : 1) + events * recordOverheadBytesMax;
}

export function endOfSlice(
  table: Uint32Array,
  start: number,
  { rows, isSlow, rules }: { rows: number; isSlow: boolean; rules?: CompiledRules | undefined },
): number {
  let end = start;
  for (let bytes = 0; end < rows && bytes < placedAtOnceBytesMax; end++) {
    const row = Header.Words + end * Row.Words;
    const itemBytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    const item = { table, row };
    const isQuick = !isSlow && isPlain(item) && !mayNeedMerging(item);
    bytes += placingBytesOf(isQuick ? itemBytes : itemBytes * slowPathFactor, 1, false);
    if (rules !== undefined) bytes += rules.workOf(itemBytes, 1);
  }
  return end;
}

/** Returns whether the request gets its own frames. The result is the same for a retry. */
export function fillsFrames(
  { lane, body, cost }: Pick<Work, "lane" | "body" | "cost">,
  { frameBytesMax }: Pick<Publisher, "frameBytesMax">,
): boolean {
  const most = lane === "live" ? frameBytesMax : Math.min(frameBytesMax, sharedHistoryBytesMax);
  return recordsBytesPlanned(body.length, cost.events) > most;
}
