// A project may have two unacknowledged frames only if the network round trip dominates the
// acknowledgement time.

import { expect, onTestFinished, test } from "vitest";
import { Distance } from "../../../src/gateway/publish/distance.ts";
import type { NatsLink } from "../../../src/platform/nats/link.ts";
import { startTcpProxy } from "../../faults/tcp-proxy.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
const lateMsEachWay = 25;

async function leaveUnacked(rig: Rig, hold: (isHeld: boolean) => void): Promise<number> {
  const before = rig.heard.framesSent;
  hold(true);
  const sends = [];
  for (const line of ["first", "second", "third", "fourth"]) {
    sends.push(rig.send("live", line));
    await nextTurn();
  }
  const left = rig.heard.framesSent - before;
  hold(false);
  expect(await Promise.all(sends)).toEqual([stored, stored, stored, stored]);
  return left;
}

test("two frames of a project are in flight to a distant store", async () => {
  const proxy = await startTcpProxy(server.port);
  onTestFinished(() => proxy.close());
  proxy.slow(lateMsEachWay, 0);
  const rig = await startRig({ ...server, url: proxy.url });
  await expect.poll(() => leaveUnacked(rig, proxy.stall), { timeout: 30_000, interval: 1 }).toBe(2);

  const { heard } = rig;
  expect(heard.retries).toBe(0);
  const lines = (await rig.stored("live")).flatMap((frame) => frame.lines);
  expect(lines.slice(-4)).toEqual(["first", "second", "third", "fourth"]);
  await rig.close();
});

class Kit {
  nowMs = 1_000;
  pings = 0;
  pingMs = 0;
  readonly #changes: ((connected: boolean) => void)[] = [];
  readonly #flush = async (): Promise<void> => {
    this.pings++;
    this.nowMs += this.pingMs;
  };
  readonly distance = new Distance({
    link: {
      connected: true,
      connection: { flush: this.#flush } as NatsLink["connection"],
      onChange: (listener) => this.#changes.push(listener),
    },
    monotonicMs: () => this.nowMs,
  });

  async frames(count: number, { pingMs, ackMs }: { pingMs: number; ackMs: number }): Promise<void> {
    this.pingMs = pingMs;
    for (let sent = 0; sent < count; sent++) {
      this.nowMs += 250;
      const firstSentMonotonicMs = this.nowMs;
      this.distance.left();
      await nextTurn();
      this.nowMs = firstSentMonotonicMs + ackMs;
      this.distance.settled({ firstSentMonotonicMs, sends: 1 });
    }
  }

  reconnect(): void {
    for (const change of this.#changes) for (const connected of [false, true]) change(connected);
  }
}

test.each([
  { what: "a near disk", pingMs: 0.2, ackMs: 0.7, isFar: false },
  { what: "a near disk that is slow", pingMs: 0.2, ackMs: 20, isFar: false },
  { what: "a near store without fsync", pingMs: 0.2, ackMs: 0.3, isFar: false },
  { what: "the next zone, with a slower disk", pingMs: 3, ackMs: 10, isFar: false },
  { what: "another region", pingMs: 5, ackMs: 6, isFar: true },
])(
  "$what counts as distant: $isFar (pings $pingMs ms, acknowledgements $ackMs ms)",
  async ({ isFar, ...took }) => {
    const kit = new Kit();
    await kit.frames(20, took);
    expect(kit.distance.isFar).toBe(isFar);
  },
);

test("slow pings are ignored if one of the last eight was fast", async () => {
  const kit = new Kit();
  await kit.frames(7, { pingMs: 5, ackMs: 6 });
  await kit.frames(1, { pingMs: 0.3, ackMs: 6 });
  await kit.frames(7, { pingMs: 5, ackMs: 6 });
  expect(kit.distance.isFar).toBe(false);
  await kit.frames(1, { pingMs: 5, ackMs: 6 });
  expect(kit.distance.isFar).toBe(true);
});

test("the distance is measured again after a reconnect", async () => {
  const kit = new Kit();
  await kit.frames(20, { pingMs: 5, ackMs: 6 });
  kit.reconnect();
  expect(kit.distance.isFar).toBe(false);
  await kit.frames(8, { pingMs: 5, ackMs: 6 });
  expect(kit.distance.isFar).toBe(true);
});

test("at most four pings per second are sent", async () => {
  const kit = new Kit();
  for (let sent = 0; sent < 100; sent++) {
    kit.nowMs += 10;
    kit.distance.left();
    kit.distance.left();
    await nextTurn();
  }
  expect(kit.pings).toBe(4);
});
