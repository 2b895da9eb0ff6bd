// Waits until the stream of a body has acknowledged enough frames to continue placing it. After
// some time the body releases its scanner, and is scanned again before it continues.

import { setTimeout as delay } from "node:timers/promises";
import { Header, ScanStatus } from "../../records/table.ts";
import type { Arrival } from "./arrivals.ts";
import type { Scanners } from "./scanners.ts";
import type { Work } from "./work.ts";

/**
 * Maximum wait in milliseconds with a scanner. To scan a body again takes less: some milliseconds
 * per 10 MB.
 */
const patienceMs = 250;

interface AwaitRoomOptions {
  readonly scanners: Scanners;
  readonly arrival: Arrival;
  /** The index of the first item in the scanner's table. */
  readonly firstItem: number;
}

/**
 * Waits for `room`. If the request has not failed by then, its scanner's table has the same rows as
 * before. Rejects only if a scanner cannot be created or is misused.
 */
export async function awaitRoom(
  work: Work,
  room: Promise<void>,
  { scanners, arrival, firstItem }: AwaitRoomOptions,
): Promise<void> {
  if (await comesSoon(room)) return;
  scanners.rest(arrival);
  await room;
  if (work.pending.failed) return;
  const scanner = await scanners.take(arrival);
  if (scanner === undefined) {
    work.pending.fail("overloaded");
    return;
  }
  work.scanner = scanner;
  if (work.pending.failed) return;
  if ((await scanner.scanInBackground(work.body)) !== ScanStatus.Ok)
    work.pending.fail("overloaded");
  while (!work.pending.failed && work.table[Header.FirstItem]! < firstItem)
    await scanner.scanMoreInBackground(work.body);
}

async function comesSoon(room: Promise<void>): Promise<boolean> {
  const over = new AbortController();
  const { signal } = over;
  const late = delay(patienceMs, false, { signal, ref: false }).catch(() => false);
  const isSoon = await Promise.race([room.then(() => true), late]);
  over.abort();
  return isSoon;
}
