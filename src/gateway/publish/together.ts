// Decides whether the live frames of a stream are sent as one atomic batch or one by one. A batch
// takes about 3 ms on a single node. The time for a single frame depends on fsyncs, replicas and
// the machine. So the gateway measures both times.

export interface Batching {
  readonly takesAtomicBatches: boolean;
}

export interface TogetherOptions {
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  readonly batchesFrom?: number | undefined;
}

export const batchFramesMin = 16;
/**
 * A second batch at the same time would save 5 % of the server's time. But its acknowledgements
 * would cost as much.
 */
const batchesUnackedMax = 1;
const saturatedFrames = 16;
const saturatedShare = 1 / 4;
const sampleFramesMin = 32;
const sampleMsMin = 5;
const newestShare = 0.25;
const batchMsAtFirst = 4;
/** A batch is used only if it is faster by this factor, because live frames must wait for it. */
const gainMin = 2;
const measureEveryMs = 1_000;
/** The number of frames sent alone after a failed batch. It doubles with consecutive failures. */
const framesAloneMin = 1_000;
const framesAloneMax = 64_000;

export class Together {
  readonly #stream: Batching;
  readonly #monotonicMs: () => number;
  readonly #batchesFrom: number | undefined;
  readonly #saturatedFrames: number;
  #aloneUnacked = 0;
  #batchesUnacked = 0;
  #toLeaveAlone = 0;
  #nextToLeaveAlone = framesAloneMin;
  #alonePerMs: number | undefined = undefined;
  #saturatedSinceMonotonicMs: number | undefined = undefined;
  #sampleMs = 0;
  #sampleFrames = 0;
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
    // After a slow batch, for example during an outage, its duration counts for only a second.
    // Otherwise, no further batch might ever be sent, and nothing would correct the measurement.
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
