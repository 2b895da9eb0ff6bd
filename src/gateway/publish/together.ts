// Decides whether the live frames of a stream leave together, as one atomic batch, or each alone. A
// batch takes a single node some 3 ms, independent of sync_interval, and little for each frame in
// it: 4 ms for 128, 17 ms for 1,000. How long a single frame takes depends on fsyncs, replicas and
// the machine, so both are measured. Does not choose whose frame leaves.

/** The parts of a stream that are used here. */
export interface Batching {
  readonly takesAtomicBatches: boolean;
}

export interface TogetherOptions {
  /** How many frames may leave alone before one is acknowledged. */
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** Minimum number of frames for an atomic batch. Default: the measured break-even point. */
  readonly batchesFrom?: number | undefined;
}

/** Fewer frames than this never leave as a batch. */
export const batchFramesMin = 16;
/**
 * Maximum number of unacknowledged batches; further frames collect for the next one. Two at a time
 * gain 5 % in the server and lose as much to the acknowledgements of smaller batches.
 */
const batchesUnackedMax = 1;
/**
 * The stream counts as saturated with single frames while this number of them is unacknowledged, or
 * this part of the window: with many streams, each has a small window, which empties at once.
 */
const saturatedFrames = 16;
const saturatedShare = 1 / 4;
/**
 * Minimum acknowledgements and duration of a measurement, because acknowledgements come in bursts.
 */
const sampleFramesMin = 32;
const sampleMsMin = 5;
/** Weight of the newest measurement in the moving average. */
const newestShare = 0.25;
/** Assumed duration of a batch before one has been measured. */
const batchMsAtFirst = 4;
/**
 * A batch must be faster than its single frames by this factor, because live frames that arrive
 * while it is in flight wait for it.
 */
const gainMin = 2;
/** After this time with batches, frames leave alone until their rate is measured again. */
const measureEveryMs = 1_000;
/**
 * Number of frames that leave alone after a batch that was not acknowledged as one: at first
 * `framesAloneMin`, doubled after each consecutive failure.
 */
const framesAloneMin = 1_000;
const framesAloneMax = 64_000;

export class Together {
  readonly #stream: Batching;
  readonly #monotonicMs: () => number;
  readonly #batchesFrom: number | undefined;
  readonly #saturatedFrames: number;
  #aloneUnacked = 0;
  #batchesUnacked = 0;
  /** How many more frames leave alone because a batch failed. */
  #toLeaveAlone = 0;
  #nextToLeaveAlone = framesAloneMin;
  /** Acknowledged single frames per millisecond; undefined until measured. */
  #alonePerMs: number | undefined = undefined;
  /** Since when the stream is saturated; undefined if it is not, or a batch is in flight. */
  #saturatedSinceMonotonicMs: number | undefined = undefined;
  /** The current measurement: its duration before `#saturatedSinceMonotonicMs`, and its frames. */
  #sampleMs = 0;
  #sampleFrames = 0;
  /** Moving average of the duration of batches. */
  #batchMs = batchMsAtFirst;
  #batchLeftMonotonicMs = 0;
  #batchEndedMonotonicMs = 0;
  #measuredMonotonicMs = 0;

  constructor(stream: Batching, { framesUnackedMax, monotonicMs, batchesFrom }: TogetherOptions) {
    this.#stream = stream;
    this.#monotonicMs = monotonicMs;
    this.#batchesFrom = batchesFrom;
    this.#saturatedFrames = Math.min(saturatedFrames, Math.ceil(saturatedShare * framesUnackedMax));
  }

  /** Returns whether a batch of the `waiting` live frames leaves now. */
  isDue(waiting: number): boolean {
    if (waiting < batchFramesMin || this.#batchesUnacked >= batchesUnackedMax) return false;
    return this.#inUse && waiting + this.#aloneUnacked >= this.#framesOfBatch;
  }

  /** Whether live frames must wait for the batch in flight. */
  get holdsLiveFrames(): boolean {
    return this.#batchesUnacked > 0 && this.#inUse;
  }

  get #inUse(): boolean {
    return this.#stream.takesAtomicBatches && this.#toLeaveAlone === 0;
  }

  /**
   * Minimum number of frames for a batch, including those in flight alone, whose clients send
   * again.
   */
  get #framesOfBatch(): number {
    if (this.#batchesFrom !== undefined) return this.#batchesFrom;
    return gainMin * (this.#alonePerMs ?? Number.POSITIVE_INFINITY) * this.#batchMs;
  }

  leftAlone(): void {
    this.#aloneUnacked++;
    if (this.#toLeaveAlone > 0) this.#toLeaveAlone--;
    if (this.#saturatedSinceMonotonicMs !== undefined || this.#batchesUnacked > 0) return;
    if (this.#isSaturated) this.#saturatedSinceMonotonicMs = this.#monotonicMs();
  }

  /** The live frames that left alone, and the batches. Both are 0 once all are settled. */
  get underWay(): { alone: number; batches: number } {
    return { alone: this.#aloneUnacked, batches: this.#batchesUnacked };
  }

  /** Counts a frame of a split batch that is sent again, alone. */
  retriedAlone(): void {
    this.#aloneUnacked++;
  }

  settledAlone(): void {
    if (this.#isSaturated) this.#sample();
    else this.#pauseSample();
    this.#aloneUnacked--;
  }

  get #isSaturated(): boolean {
    return this.#aloneUnacked >= this.#saturatedFrames && this.#stream.takesAtomicBatches;
  }

  /**
   * Acknowledgements come in bursts, and until new frames follow them the stream is not saturated.
   */
  #pauseSample(): void {
    if (this.#saturatedSinceMonotonicMs === undefined) return;
    this.#sampleMs += this.#monotonicMs() - this.#saturatedSinceMonotonicMs;
    this.#saturatedSinceMonotonicMs = undefined;
  }

  #sample(): void {
    if (this.#saturatedSinceMonotonicMs === undefined) return;
    if (++this.#sampleFrames < sampleFramesMin) return;
    const monotonicMs = this.#monotonicMs();
    const tookMs = this.#sampleMs + monotonicMs - this.#saturatedSinceMonotonicMs;
    if (tookMs < sampleMsMin) return;
    const perMs = this.#sampleFrames / tookMs;
    this.#alonePerMs = mixed(this.#alonePerMs ?? perMs, perMs);
    this.#forgetSample();
    this.#saturatedSinceMonotonicMs = monotonicMs;
    this.#measuredMonotonicMs = monotonicMs;
    // After a slow batch, for example during an outage of the store, the required number of frames
    // might be so high that no batch leaves any more and none is measured. So its duration counts
    // for a second only.
    if (monotonicMs - this.#batchEndedMonotonicMs >= measureEveryMs)
      this.#batchMs = Math.min(this.#batchMs, batchMsAtFirst);
  }

  #forgetSample(): void {
    this.#saturatedSinceMonotonicMs = undefined;
    this.#sampleMs = 0;
    this.#sampleFrames = 0;
  }

  batchLeft(): void {
    this.#batchesUnacked++;
    this.#forgetSample();
    this.#batchLeftMonotonicMs = this.#monotonicMs();
  }

  /** Records that no frame waits for the batch any more. `isStored`: it was acknowledged. */
  batchEnded(isStored: boolean): void {
    this.#batchesUnacked--;
    const monotonicMs = this.#monotonicMs();
    this.#batchEndedMonotonicMs = monotonicMs;
    if (isStored) {
      this.#nextToLeaveAlone = framesAloneMin;
      this.#batchMs = mixed(this.#batchMs, monotonicMs - this.#batchLeftMonotonicMs);
      if (monotonicMs - this.#measuredMonotonicMs >= measureEveryMs) this.#alonePerMs = undefined;
      return;
    }
    this.#toLeaveAlone = this.#nextToLeaveAlone;
    this.#nextToLeaveAlone = Math.min(2 * this.#nextToLeaveAlone, framesAloneMax);
  }
}

function mixed(before: number, newest: number): number {
  return before + newestShare * (newest - before);
}
