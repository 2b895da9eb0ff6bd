// Whether the live frames of a stream leave together, as one atomic batch, or each alone. A batch
// takes a single node some 3 ms, whatever its sync_interval is, and little for each frame in it:
// 4 ms for 128, 17 for 1,000. How long a frame alone takes depends on fsyncs, replicas and the
// machine, so both are measured. Must not choose whose frame leaves.

/** What is known here of a stream. */
export interface Batching {
  readonly takesAtomicBatches: boolean;
}

export interface TogetherOptions {
  /** How many frames may leave alone before one is acknowledged. */
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** So many frames leave together, whatever is measured. Default: where that is faster. */
  readonly batchesFrom?: number | undefined;
}

/** So few frames never leave together. */
export const batchFramesMin = 16;
/**
 * While so many batches are unacknowledged, frames gather for the next one. Two at a time gain 5 %
 * in the server, and as much is lost to the acknowledgements of smaller batches.
 */
const batchesUnackedMax = 1;
/**
 * The stream counts as having all it can do with frames alone while so many are unacknowledged, or
 * this part of the window: one of many streams has a small window, and loses most of it at once.
 */
const saturatedFrames = 16;
const saturatedShare = 1 / 4;
/** A measurement takes in so many acknowledgements and so long, because they come in bursts. */
const sampleFramesMin = 32;
const sampleMsMin = 5;
/** How much the newest measurement counts against those before. */
const newestShare = 0.25;
/** What a batch is taken to need before one has been measured. */
const batchMsAtFirst = 4;
/**
 * A batch must be so many times as fast as its frames would be alone, because while it is under way
 * the live frames that come then wait for it.
 */
const gainMin = 2;
/** After so long with batches, frames leave alone until it is measured again what that is. */
const measureEveryMs = 1_000;
/**
 * After a batch that was not acknowledged as one, so many frames leave alone before the next is
 * tried: the first number at first, and twice as many after each batch that fails in a row.
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
  /** How many more frames leave alone because a batch has failed. */
  #toLeaveAlone = 0;
  #nextToLeaveAlone = framesAloneMin;
  /** How many frames alone the stream acknowledges in a millisecond; undefined until measured. */
  #alonePerMs: number | undefined = undefined;
  /** Since when the stream has all it can do; undefined: it has not, or a batch is under way. */
  #saturatedSinceMonotonicMs: number | undefined = undefined;
  /** The measurement that is being made: the time before that moment, and all its frames. */
  #sampleMs = 0;
  #sampleFrames = 0;
  /** What a batch of the size takes that they have lately. */
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

  /** Whether a batch leaves now, of the `waiting` live frames. */
  isDue(waiting: number): boolean {
    if (waiting < batchFramesMin || this.#batchesUnacked >= batchesUnackedMax) return false;
    return this.#inUse && waiting + this.#aloneUnacked >= this.#framesOfBatch;
  }

  /** Whether no live frame may leave alone now. */
  get holdsLiveFrames(): boolean {
    return this.#batchesUnacked > 0 && this.#inUse;
  }

  get #inUse(): boolean {
    return this.#stream.takesAtomicBatches && this.#toLeaveAlone === 0;
  }

  /** From how many frames on they leave together: those that are under way alone come again. */
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

  /** The live frames that have left alone, and the batches. None, once all are settled. */
  get underWay(): { alone: number; batches: number } {
    return { alone: this.#aloneUnacked, batches: this.#batchesUnacked };
  }

  /** A frame of a batch that was parted leaves again, alone. */
  leftAgain(): void {
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

  /** Acknowledgements come many at a time, and until frames follow them the stream has few. */
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
    // After a batch that took long, as beside a stop of the store, so many frames might be asked
    // for that no batch leaves any more and none is measured. So its time counts for a second.
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

  /** Nothing waits for the batch any more. `isStored`: it was acknowledged. */
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
