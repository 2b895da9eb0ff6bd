// The budget of bytes in flight of one process: bodies in hand and lines not yet acknowledged. Full means refuse now;
// nothing queues here, and nothing here knows what the bytes are.

import type { Admission } from "../types.ts";

class ByteBudget implements Admission {
  bytes = 0;
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  tryTake(bytes: number): boolean {
    if (this.bytes + bytes > this.bytesMax) return false;
    this.bytes += bytes;
    return true;
  }

  take(bytes: number): void {
    this.bytes += bytes;
  }

  release(bytes: number): void {
    this.bytes -= bytes;
    if (this.bytes < 0) throw new Error(`Release of bytes in flight: ${-this.bytes} more than were taken`);
  }
}

/** A budget of `bytesMax` bytes. Releasing more than was taken is a bug and throws. */
export function createAdmission(bytesMax: number): Admission {
  return new ByteBudget(bytesMax);
}
