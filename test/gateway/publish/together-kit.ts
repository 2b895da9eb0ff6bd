import { expect } from "vitest";
import { type Departure, Departures } from "../../../src/gateway/publish/departures.ts";

interface TestQueue {
  readonly lane: "live";
  readonly background: boolean;
  unacked: number;
  unackedBytes: number;
}

export interface TestFrame {
  readonly queue: TestQueue;
  readonly length: number;
  departedBytes: number;
  departure: Departure;
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

export class Kit {
  readonly stream = { takesAtomicBatches: true };
  readonly departures: Departures<TestFrame>;
  nowMs = 1_000;
  readonly alone: TestFrame[] = [];
  readonly batches: TestFrame[][] = [];

  constructor(batchesFrom?: number, framesUnackedMax = 64) {
    const monotonicMs = (): number => this.nowMs;
    this.departures = new Departures(this.stream, {
      framesUnackedMax,
      batchesFrom,
      monotonicMs,
    });
  }

  add(count: number, background = false): void {
    for (let added = 0; added < count; added++)
      this.departures.push({ lane: "live", background, unacked: 0, unackedBytes: 0 });
  }

  flush(): void {
    for (;;) {
      if (this.departures.batchIsDue) this.#flushBatch();
      const next = this.departures.nextOfSplit();
      if (next !== undefined) {
        this.departures.retriedAlone(next);
        this.alone.push(next);
        continue;
      }
      const queue = this.departures.next();
      if (queue === undefined) break;
      const frame = frameOf(queue);
      this.departures.left(frame);
      this.alone.push(frame);
    }
    expect(this.departures.waiting).toBe(false);
  }

  leaveBeside(count: number): void {
    for (let left = 0; left < count; left++) {
      const rest = { background: false, unacked: 0, unackedBytes: 0 };
      const frame = frameOf({ lane: "live", ...rest });
      this.departures.left(frame);
      this.alone.push(frame);
    }
  }

  #flushBatch(): void {
    const frames: TestFrame[] = [];
    for (let queue = this.departures.nextOfBatch(); queue; queue = this.departures.nextOfBatch()) {
      const frame = frameOf(queue);
      this.departures.leftInBatch(frame);
      frames.push(frame);
    }
    this.departures.batchLeft();
    this.batches.push(frames);
  }

  settleAlone(count: number): void {
    for (const frame of this.alone.splice(0, count)) this.departures.settled(frame);
  }

  settleBatch(): void {
    const frames = this.batches.shift()!;
    this.departures.batchEnded(true);
    for (const frame of frames) this.departures.settled(frame);
  }

  partBatch(): void {
    const frames = this.batches.shift()!;
    this.departures.batchEnded(false);
    for (const frame of frames) this.departures.batchSplit(frame);
  }

  get underWay(): { alone: number; batches: number[] } {
    return { alone: this.alone.length, batches: this.batches.map(({ length }) => length) };
  }
}

function frameOf(queue: TestQueue): TestFrame {
  const sent = { firstSentMonotonicMs: 0, sends: 1 };
  return { queue, length: 500, departedBytes: 0, departure: "alone", ...sent };
}
