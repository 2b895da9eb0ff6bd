// Decides whether the live frames of a stream are sent together as one atomic batch, or each alone.
// On a single node, a batch takes about 3 ms, and little more for each frame. The time of a single
// frame depends on fsyncs, replicas and the machine. So both times are measured.

export interface Batching {
  readonly takesAtomicBatches: boolean;
}

export interface TogetherOptions {
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** Minimum number of frames for an atomic batch. Default: the measured break-even point. */
  readonly batchesFrom?: number | undefined;
}

export const batchFramesMin = 16;
/**
 * Maximum number of batches in flight. A second batch would save the server 5 % of its time, but
 * cost as much for acknowledgements.
 */
const batchesUnackedMax = 1;
/** Number of single frames in flight from which a stream is saturated. */
const saturatedFrames = 16;
const saturatedShare = 1 / 4;
/** Minimum number of frames of a measurement, because acknowledgements arrive in bursts. */
const sampleFramesMin = 32;
const sampleMsMin = 5;
const newestShare = 0.25;
/** Assumed duration of a batch before the first measurement. */
const batchMsAtFirst = 4;
/** Minimum factor by which a batch must be faster, because live frames wait for it. */
const gainMin = 2;
/** Time with batches after which the rate of single frames is measured again. */
const measureEveryMs = 1_000;
/** Number of frames sent alone after a failed batch. Doubles at each consecutive failure. */
const framesAloneMin = 1_000;
const framesAloneMax = 64_000;

export class Together {
  readonly #stream: Batching;
  readonly #monotonicMs: () => number;
  readonly #batchesFrom: number | undefined;
  readonly #saturatedFrames: number;
  #aloneUnacked = 0;
  #batchesUnacked = 0;
  /** Number of frames that must still be sent alone because a batch failed. */
  #toLeaveAlone = 0;
  #nextToLeaveAlone = framesAloneMin;
  /** Acknowledged single frames per millisecond; undefined until measured. */
  #alonePerMs: number | undefined = undefined;
  /** Time since which the stream is saturated without a batch in flight. Undefined otherwise. */
  #saturatedSinceMonotonicMs: number | undefined = undefined;
  /** The time of the measurement before `#saturatedSinceMonotonicMs`. */
  #sampleMs = 0;
  #sampleFrames = 0;
  /** Moving average of the duration of batches, in milliseconds. */
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

  isDue(waiting: number): boolean {
    if (waiting < batchFramesMin || this.#batchesUnacked >= batchesUnackedMax) return false;
    return this.#inUse && waiting + this.#aloneUnacked >= this.#framesOfBatch;
  }

  get holdsLiveFrames(): boolean {
    return this.#batchesUnacked > 0 && this.#inUse;
  }

  get #inUse(): boolean {
    return this.#stream.takesAtomicBatches && this.#toLeaveAlone === 0;
  }

  /** Minimum number of frames for a batch, including frames in flight alone. */
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

  /** Counts that are both 0 when every frame has an outcome. */
  get underWay(): { alone: number; batches: number } {
    return { alone: this.#aloneUnacked, batches: this.#batchesUnacked };
  }

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

  /** Pauses the measurement, because a burst of acknowledgements ends the saturation. */
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
    // A slow batch, for example during an outage, might raise the required frames so far that no
    // batch is sent or measured any more. So its duration counts for only a second.
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

  /** Records that no frame waits for the batch. `isStored` means an acknowledged batch. */
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
