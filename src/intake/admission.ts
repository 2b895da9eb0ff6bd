// The budget of bytes in flight of one process: bodies in hand and lines not yet acknowledged. Full
// means refuse now; nothing queues here, and nothing here knows what the bytes are. Large requests
// cannot take what small ones need.

import type { Admission } from "../base/types.ts";

/** A request that holds or announces more is a large one. */
const smallRequestBytesMax = 262_144;
/** Where large requests have filled the budget, small ones still get this share of it on top. */
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
