// Repairs a body that is not UTF-8: writes U+FFFD in place of malformed bytes, so that those of one
// event do not cost the others of its batch. Works in slices of the event loop's time. The scan
// bounds the work, because it says how much there is to repair. Must not judge events.

import { Buffer } from "node:buffer";
import { Header, type Scanner, ScanStatus } from "../scan/table.ts";
import type { LoopShare } from "./loop-share.ts";

export interface RepairedBody {
  readonly body: Buffer;
  /** Offsets in `body` of the characters that replace malformed bytes, ascending. */
  readonly malformed: Uint32Array;
}

/** Bytes of the body read in one slice, which takes 0.3 ms at most. */
const bytesPerSlice = 65_536;

/** Whether the scan that ended with this status found malformed bytes that can be repaired. */
export function isRepairable(status: ScanStatus, { table }: Pick<Scanner, "table">): boolean {
  return status === ScanStatus.InvalidUtf8 && table[Header.Malformed]! > 0;
}

/**
 * Repairs the body; only after `isRepairable`. Once the promise is returned, the scanner's table is
 * not read any more, so the scanner may scan something else.
 */
export async function repairedBody(
  body: Buffer,
  scanner: Scanner,
  share: LoopShare,
): Promise<RepairedBody> {
  const repair = {
    text: Buffer.allocUnsafeSlow(scanner.table[Header.RepairedBytes]!),
    places: new Uint32Array(scanner.table[Header.Malformed]!),
    progress: new Uint32Array(3),
  };
  const { progress } = repair;
  const slice = (): void =>
    scanner.repair(body, Math.min(body.length, progress[0]! + bytesPerSlice), repair);
  while (progress[0]! < body.length) await share.slice(slice);
  return { body: repair.text, malformed: repair.places };
}

/** Whether one of the places, which ascend, lies in [start, end). */
export function hasPlaceIn(places: Uint32Array, start: number, end: number): boolean {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]! < start) low = middle + 1;
    else high = middle;
  }
  return low < places.length && places[low]! < end;
}
