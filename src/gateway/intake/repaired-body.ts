// Repairs a body, so that one malformed event does not fail its whole batch. Malformed UTF-8 is
// replaced by U+FFFD. NaN and Infinity are replaced by `null`.

import { Buffer } from "node:buffer";
import { Header, type Scanner, ScanStatus } from "../../records/table.ts";
import type { LoopShare } from "./loop-share.ts";

export interface RepairedBody {
  readonly body: Buffer;
  readonly malformed: Uint32Array;
  readonly nonFinite: Uint32Array;
}

/** Repairing this number of bytes takes at most 0.3 ms. */
const bytesPerSlice = 65_536;

export function isRepairable(status: ScanStatus, { table }: Pick<Scanner, "table">): boolean {
  return status !== ScanStatus.Ok && table[Header.RepairedBytes]! > 0;
}

/**
 * Repairs a body. `isRepairable` must have returned true for it. The scanner is free when this
 * function returns.
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
