// The bytes that the memories of duplicates of all streams may take together. Only says whether
// there is room; a memory that gets no room forgets what is oldest.

export class DuplicatesBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  #streams = 0;

  constructor(options: { readonly bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  addStream(): void {
    this.#streams++;
  }

  removeStream(): void {
    this.#streams--;
  }

  /** Counts what was allocated, or, less than 0, given up. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /**
   * Whether a stream that has `ownBytes` may take `bytes` more: while the total leaves room, and up
   * to an equal share of the total in any case, so that an import does not starve the live lane.
   */
  hasRoom(ownBytes: number, bytes: number): boolean {
    if (this.#bytes + bytes <= this.#bytesMax) return true;
    return ownBytes + bytes <= this.#bytesMax / Math.max(1, this.#streams);
  }
}
