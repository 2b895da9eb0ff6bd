// The process's budget of bytes in flight: bodies in memory and lines that are not acknowledged. If
// it is full, requests are refused at once; there is no queue. Small requests may exceed it a
// little, so that large ones cannot shut them out.

/** The process's budget of bytes in flight: bodies in memory and unacknowledged lines. */
export interface Admission {
  readonly bytes: number;
  readonly bytesMax: number;
  /**
   * Whether a request that holds or announces this many bytes in total is large. Some room is
   * reserved for small requests.
   */
  isLarge(requestBytes: number): boolean;
  /**
   * Takes the bytes and returns true, or takes nothing and returns false if they do not fit.
   * `requestBytes` is the request's total with them or, if that is more, its announced size.
   */
  tryTake(bytes: number, requestBytes: number): boolean;
  /** How many bytes must be released before `tryTake` succeeds; 0 or less: none. */
  lacking(bytes: number, requestBytes: number): number;
  /** Takes bytes that can no longer be refused (lines of a body already admitted). */
  take(bytes: number): void;
  release(bytes: number): void;
}

/** A request that holds or announces more bytes than this is large. */
const smallRequestBytesMax = 262_144;
/**
 * Small requests may exceed the budget by this share of it, so they fit even if large ones have
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

/** Creates a budget of `bytesMax` bytes. Releasing more than was taken is a bug and throws. */
export function createAdmission(bytesMax: number): Admission {
  return new ByteBudget(bytesMax);
}
