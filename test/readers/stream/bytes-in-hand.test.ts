import fc from "fast-check";
import { expect, test } from "vitest";
import { BytesInHand } from "../../../src/readers/stream/bytes-in-hand.ts";

function ignore(): void {}

test("a stream may hold half of the memory that other streams leave", () => {
  const bytes = new BytesInHand(1_000);
  const one = bytes.join(ignore);
  expect(one.room()).toBe(500);
  one.add(500);
  expect(one.room()).toBe(0);
  const other = bytes.join(ignore);
  expect(other.room()).toBe(250);
  one.release(400);
  expect(one.room()).toBe(400);
  expect(other.room()).toBe(450);
  expect(bytes.used).toBe(100);
});

test("a stream without frames in memory may always read one frame", () => {
  const bytes = new BytesInHand(1_000);
  const [one, other] = [bytes.join(ignore), bytes.join(ignore)];
  one.add(5_000);
  expect(one.room()).toBe(0);
  expect(other.room()).toBe(1);
  other.add(300);
  expect(other.room()).toBe(0);
});

test("streams that still read are asked to continue when memory is freed", () => {
  const bytes = new BytesInHand(1_000);
  const asked: string[] = [];
  const one = bytes.join(() => asked.push("one"));
  const other = bytes.join(() => asked.push("other"));
  one.add(10);
  expect(asked).toEqual([]);
  one.release(4);
  expect(asked).toEqual(["one", "other"]);
  one.leave();
  other.add(1);
  one.release(6);
  expect(asked).toEqual(["one", "other", "other"]);
  expect(bytes.used).toBe(1);
  expect(other.room()).toBe(499);
});

test("the number of messages to request depends on earlier message sizes", () => {
  const share = new BytesInHand(1e9).join(ignore);
  expect(share.messagesIn(1)).toBe(1);
  for (let frame = 0; frame < 200; frame++) share.add(1_000);
  expect(share.messagesIn(100_000)).toBe(99);
});

test("streams hold at most the reading memory plus one frame each", () => {
  const step = fc.record({ stream: fc.nat({ max: 3 }), bytes: fc.integer({ min: 1, max: 700 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.array(fc.boolean()), (steps, releases) => {
      const bytes = new BytesInHand(1_000);
      const streams = Array.from({ length: 4 }, () => ({ share: bytes.join(ignore), has: 0 }));
      for (const [at, { stream, bytes: wanted }] of steps.entries()) {
        const one = streams[stream]!;
        if (releases[at] === true) {
          one.share.release(one.has);
          one.has = 0;
        }
        const taken = Math.min(wanted, one.share.room());
        one.share.add(taken);
        one.has += taken;
        expect(bytes.used).toBe(streams.reduce((sum, { has }) => sum + has, 0));
        // Each stream may always hold one frame, which has one byte here.
        expect(bytes.used).toBeLessThanOrEqual(bytes.max + streams.length);
        expect(one.has).toBeLessThanOrEqual(bytes.max / 2);
      }
    }),
  );
});
