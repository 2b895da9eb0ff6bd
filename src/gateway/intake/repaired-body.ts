// Repairs a body that the scan refused, so that a malformed event does not reject the others of its
// batch. U+FFFD replaces malformed UTF-8, and `null` replaces NaN and Infinity. Works in slices, so
// that other requests are processed in between. Does not apply the rules for events.

import { Buffer } from "node:buffer";
import { Header, type Scanner, ScanStatus } from "../../records/table.ts";
import type { LoopShare } from "./loop-share.ts";

export interface RepairedBody {
  readonly body: Buffer;
  /** The position of each object's first replacement for malformed bytes in `body`, ascending. */
  readonly malformed: Uint32Array;
  /**
   * The position of each object's first `null` that replaces NaN or Infinity in `body`, ascending.
   */
  readonly nonFinite: Uint32Array;
}

/** Number of bytes of the body that are read in one slice, which takes 0.3 ms at most. */
const bytesPerSlice = 65_536;

/** Returns whether the scan that ended with this status found a body that can be repaired. */
export function isRepairable(status: ScanStatus, { table }: Pick<Scanner, "table">): boolean {
  return status !== ScanStatus.Ok && table[Header.RepairedBytes]! > 0;
}

/**
 * Returns the repaired body. Must be called only after `isRepairable`. Once the promise is
 * returned, the scanner's table is no longer read, so the scanner may scan another body.
 */
export async function repairedBody(
  body: Buffer,
  scanner: Scanner,
  share: LoopShare,
): Promise<RepairedBody> {
  const repair = {
    text: Buffer.allocUnsafeSlow(scanner.table[Header.RepairedBytes]!),
    malformed: new Uint32Array(scanner.table[Header.Malformed]!),
    nonFinite: new Uint32Array(scanner.table[Header.NonFinite]!),
    progress: new Uint32Array(5),
  };
  const { progress } = repair;
  const slice = (): void =>
    scanner.repair(body, Math.min(body.length, progress[0]! + bytesPerSlice), repair);
  while (progress[0]! < body.length) await share.slice(slice);
  return { body: repair.text, malformed: repair.malformed, nonFinite: repair.nonFinite };
}

/** Returns whether one of the ascending positions is in [start, end). */
export function hasPositionIn(positions: Uint32Array, start: number, end: number): boolean {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! < start) low = middle + 1;
    else high = middle;
  }
  return low < positions.length && positions[low]! < end;
}
