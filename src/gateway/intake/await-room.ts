// The wait of a body that is being placed for acknowledgements of its stream. Its scanner may go to
// another body meanwhile, and then it is scanned again. Knows no frames.

import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import type { Arrival } from "./arrivals.ts";
import type { ScannerQueue } from "./scanner-queue.ts";
import type { Work } from "./work.ts";

interface AwaitRoomOptions {
  readonly scanners: ScannerQueue;
  readonly arrival: Arrival;
  /** The first item in the scanner's table. */
  readonly firstItem: number;
}

/**
 * Waits for `room`. If the request has not failed then, its scanner's table holds the same rows as
 * before. Rejects only when a scanner cannot be made, and for misuse of it.
 */
export async function awaitRoom(
  work: Work,
  room: Promise<void>,
  { scanners, arrival, firstItem }: AwaitRoomOptions,
): Promise<void> {
  const keepsScanner = await scanners.keepWhile(room, arrival);
  if (!keepsScanner && !work.pending.failed)
    await scanAgain(work, await scanners.take(arrival), firstItem);
}

async function scanAgain(
  work: Work,
  scanner: BackgroundScanner | undefined,
  firstItem: number,
): Promise<void> {
  const { body, pending } = work;
  if (scanner === undefined) {
    pending.fail("timeout");
    return;
  }
  work.scanner = scanner;
  if ((await scanner.scanInBackground(body)) !== ScanStatus.Ok) pending.fail("overloaded");
  while (!pending.failed && work.table[Header.FirstItem]! < firstItem)
    await scanner.scanMoreInBackground(body);
}
