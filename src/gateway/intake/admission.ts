// The process's budget of bytes in flight: bodies in memory and unacknowledged lines. If the budget
// is full, requests are refused at once; there is no queue. Small requests may exceed it a little,
// so that large ones cannot shut them out.

/** The process's budget of bytes in flight: bodies in memory and unacknowledged lines. */
export interface Admission {
  readonly bytes: number;
  readonly bytesMax: number;
  /**
   * Returns whether a request that holds or announces this many bytes in total is large. Some room
   * is reserved for small requests.
   */
  isLarge(requestBytes: number): boolean;
  /**
   * Takes the bytes and returns true. If they do not fit, takes nothing and returns false.
   * `requestBytes`: the total bytes of the request including these, or its announced size if that
   * is more.
   */
  tryTake(bytes: number, requestBytes: number): boolean;
  /**
   * Returns how many bytes must be released before `tryTake` succeeds; 0 or less if it can succeed
   * now.
   */
  lacking(bytes: number, requestBytes: number): number;
  /** Takes bytes that can no longer be refused (lines of a body already admitted). */
  take(bytes: number): void;
  release(bytes: number): void;
}

/** Maximum bytes of a small request, held or announced. */
const smallRequestBytesMax = 262_144;
/**
 * The share of the budget by which small requests may exceed it, so that they fit even if large
 * ones have filled it.
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

/**
 * Returns a budget of `bytesMax` bytes. If more bytes are released than were taken, it throws,
 * because that is a bug.
 */
export function createAdmission(bytesMax: number): Admission {
  return new ByteBudget(bytesMax);
}
