const smallRequestBytesMax = 262_144;
/**
 * Small requests may exceed the budget by this share, so that they still fit when large requests
 * fill the budget.
 */
const smallRoomShare = 1 / 8;

/**
 * The budget of bytes in flight. It includes the bodies in memory and the unacknowledged lines.
 * Requests do not wait for the budget: if a request does not fit, it is rejected.
 */
export class Admission {
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

  /**
   * Returns the number of bytes that must be released before `tryTake` can succeed. If the result
   * is 0 or less, it can succeed now.
   */
  lacking(bytes: number, requestBytes: number): number {
    return this.bytes + bytes - (this.isLarge(requestBytes) ? this.bytesMax : this.#smallBytesMax);
  }

  take(bytes: number): void {
    this.bytes += bytes;
  }

  release(bytes: number): void {
    this.bytes -= bytes;
    if (this.bytes < 0)
      throw new Error(`cannot release bytes in flight: ${-this.bytes} more than were taken`);
  }
}
