// Whether the live frames of a stream leave together, as one atomic batch, or each alone. A batch
// costs a server of one node some 4 ms however many frames are in it, and a frame alone 0.24 ms:
// so few frames leave alone, and many wait for each other. Must not choose whose frame leaves.

/** What is known here of a stream. */
interface Stream {
  readonly takesAtomicBatches: boolean;
}

/**
 * So many frames leave together at least. So many leave alone at a time, too: with more projects
 * than that, the others' frames wait until they are enough for a batch.
 */
export const batchFramesMin = 16;
/**
 * While that many batches are unacknowledged, frames gather for the next one. As with a project's
 * frames, more than one spends on acknowledgements what overlap would gain.
 */
const batchesUnackedMax = 1;
/**
 * After a batch that was not acknowledged as one, so many frames leave alone before the next is
 * tried: the first number at first, and twice as many after each batch that fails in a row.
 */
const framesAloneMin = 1_000;
const framesAloneMax = 64_000;

export class Together {
  readonly #stream: Stream;
  #aloneUnacked = 0;
  #batchesUnacked = 0;
  /** How many more frames leave alone because a batch has failed. */
  #toLeaveAlone = 0;
  #nextToLeaveAlone = framesAloneMin;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Whether a batch leaves now, of the `waiting` live frames. */
  isDue(waiting: number): boolean {
    return waiting >= batchFramesMin && this.#inUse && this.#batchesUnacked < batchesUnackedMax;
  }

  /** Whether no live frame may leave alone now. */
  get holds(): boolean {
    return this.#inUse && (this.#batchesUnacked > 0 || this.#aloneUnacked >= batchFramesMin);
  }

  get #inUse(): boolean {
    return this.#stream.takesAtomicBatches && this.#toLeaveAlone === 0;
  }

  leftAlone(): void {
    this.#aloneUnacked++;
    if (this.#toLeaveAlone > 0) this.#toLeaveAlone--;
  }

  /** A frame of a batch that was parted is sent again, alone. */
  parted(): void {
    this.#aloneUnacked++;
  }

  settledAlone(): void {
    this.#aloneUnacked--;
  }

  batchLeft(): void {
    this.#batchesUnacked++;
  }

  /** Nothing waits for the batch any more. `isStored`: it was acknowledged. */
  batchEnded(isStored: boolean): void {
    this.#batchesUnacked--;
    if (isStored) {
      this.#nextToLeaveAlone = framesAloneMin;
      return;
    }
    this.#toLeaveAlone = this.#nextToLeaveAlone;
    this.#nextToLeaveAlone = Math.min(2 * this.#nextToLeaveAlone, framesAloneMax);
  }
}
