import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Admission } from "../../../src/gateway/intake/admission.ts";
import { FrameMemory } from "../../../src/gateway/publish/frame-memory.ts";
import type { FrameWaiter } from "../../../src/gateway/publish/port.ts";
import { Settlement } from "../../../src/gateway/publish/settlement.ts";

const unlimited = new Admission(Number.MAX_SAFE_INTEGER);
const waitersMany = 5_000;
const toldAtOnceMax = 600;

test("the requests of acknowledged frames are notified over several turns", async () => {
  const heard: string[] = [];
  let allNotified = 0;
  const settlement = new Settlement({
    admission: unlimited,
    memory: new FrameMemory(524_288),
    log: { error: () => {} },
    allNotified: () => void allNotified++,
  });
  const waiter = (name: string): FrameWaiter => ({
    frameSettled(outcome, code, events, bytes) {
      heard.push(`${name} ${outcome} ${code} ${events} ${bytes}`);
      if (name.endsWith("7")) throw new Error("a bug");
    },
  });
  const frameOf = (frame: string) => {
    const places = Array.from({ length: waitersMany }, (_, place) => place);
    return {
      waiters: places.map((place) => waiter(`${frame}${place}`)),
      joins: places.flatMap((place) => [0, place, 2 * place]),
      messageBytesPerByte: 1,
    };
  };

  settlement.notify(frameOf("a"), "stored", undefined);
  settlement.notify(frameOf("b"), "refused", "store_full");
  expect(settlement.isNotifying).toBe(true);
  expect(allNotified).toBe(0);
  while (settlement.isNotifying) {
    const before = heard.length;
    await turn();
    expect(heard.length - before).toBeGreaterThan(0);
    expect(heard.length - before).toBeLessThan(toldAtOnceMax);
  }

  expect(allNotified).toBe(1);
  expect(heard).toEqual([
    ...frameOf("a").waiters.map((_, place) => `a${place} stored undefined ${place} ${2 * place}`),
    ...frameOf("b").waiters.map((_, place) => `b${place} refused store_full ${place} ${2 * place}`),
  ]);
});

test("a few requests of an acknowledged frame are notified immediately", () => {
  let times = 0;
  const settlement = new Settlement({
    admission: unlimited,
    memory: new FrameMemory(524_288),
    log: { error: () => {} },
    allNotified: () => {},
  });
  const waiters = [{ frameSettled: () => void times++ }, { frameSettled: () => void times++ }];
  settlement.notify(
    { waiters, joins: [0, 1, 1, 0, 1, 1], messageBytesPerByte: 1 },
    "stored",
    undefined,
  );
  expect(times).toBe(2);
  expect(settlement.isNotifying).toBe(false);
});
