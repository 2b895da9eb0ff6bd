import { describe, expect, test } from "vitest";
import { type Departure, Departures } from "../../../src/gateway/publish/departures.ts";

const windowOfStream = 64;

interface TestQueue {
  readonly lane: "live";
  readonly background: boolean;
  unacked: number;
  unackedBytes: number;
}

interface TestFrame {
  readonly queue: TestQueue;
  readonly length: number;
  departedBytes: number;
  departure: Departure;
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

class Kit {
  readonly departures = new Departures<TestFrame>(
    { takesAtomicBatches: false },
    { framesUnackedMax: windowOfStream, monotonicMs: () => 0 },
  );
  readonly #underWay: TestFrame[] = [];
  readonly left = { live: 0, background: 0 };
  readonly #bytes: number;

  constructor(backgroundBytes: number) {
    this.#bytes = backgroundBytes;
  }

  add(count: number, background: boolean): void {
    for (let added = 0; added < count; added++) {
      this.departures.push({ lane: "live", background, unacked: 0, unackedBytes: 0 });
    }
  }

  sendAll(): void {
    for (let queue = this.departures.next(); queue !== undefined; queue = this.departures.next()) {
      const length = queue.background ? this.#bytes : 500;
      const sent = { firstSentMonotonicMs: 0, sends: 1 };
      const frame: TestFrame = { queue, length, departedBytes: 0, departure: "alone", ...sent };
      this.departures.left(frame);
      this.#underWay.push(frame);
      this.left[queue.background ? "background" : "live"]++;
    }
  }

  acknowledgeFirst(): void {
    const frame = this.#underWay.shift()!;
    this.departures.settled(frame);
    this.departures.push(frame.queue);
  }

  get backgroundUnderWay(): number {
    return this.#underWay.filter(({ queue }) => queue.background).length;
  }
}

describe("live and background queues", () => {
  test("alternate small background frames with live frames", () => {
    const kit = new Kit(500);
    kit.add(200, false);
    kit.add(10, true);
    for (let acks = 0; acks < 10_000; acks++) {
      kit.sendAll();
      kit.acknowledgeFirst();
    }
    expect(kit.left.background).toBeGreaterThan(1_000);
    expect(kit.left.live).toBeGreaterThan(5_000);
  });

  test("have at most two large background frames in flight", () => {
    const kit = new Kit(262_144);
    kit.add(200, false);
    kit.add(10, true);
    for (let acks = 0; acks < 10_000; acks++) {
      kit.sendAll();
      expect(kit.backgroundUnderWay).toBeLessThanOrEqual(2);
      kit.acknowledgeFirst();
    }
    expect(kit.left.background).toBeGreaterThan(100);
  });
});
