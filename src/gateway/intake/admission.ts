// The budget of bytes in flight of one process: bodies in hand and lines not yet acknowledged.
// While it is full, requests are refused at once: nothing queues here, and nothing here knows what
// the bytes are. Small requests have some room on top, so large ones cannot shut them out.

import type { Admission } from "../../platform/base/types.ts";

/** A request that holds or announces more bytes than this is a large one. */
const smallRequestBytesMax = 262_144;
/**
 * Small requests may exceed the budget by this share of it. So they still fit where large ones have
 * filled it.
 */
const smallRoomShare = 1 / 8;

class ByteBudget implements Admission {
  bytes = 0;
  readonly bytesMax: number;
  readonly #smallBytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    this.#smallBytesMax = bytesMax + Math.floor(bytesMax * smallRoomShare);
  }

  isLarge(requestBytes: number): boolean {
    return requestBytes > smallRequestBytesMax;
  }

  tryTake(bytes: number, requestBytes: number): boolean {
    if (this.lacking(bytes, requestBytes) > 0) return false;
    this.bytes += bytes;
    return true;
  }

  lacking(bytes: number, requestBytes: number): number {
    return this.bytes + bytes - (this.isLarge(requestBytes) ? this.bytesMax : this.#smallBytesMax);
  }

  take(bytes: number): void {
    this.bytes += bytes;
  }

  release(bytes: number): void {
    this.bytes -= bytes;
    if (this.bytes < 0)
      throw new Error(`Release of bytes in flight: ${-this.bytes} more than were taken`);
  }
}

/** A budget of `bytesMax` bytes. Releasing more than was taken is a bug and throws. */
export function createAdmission(bytesMax: number): Admission {
  return new ByteBudget(bytesMax);
}
