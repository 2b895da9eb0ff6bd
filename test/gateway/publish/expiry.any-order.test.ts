import fc from "fast-check";
import { expect, test } from "vitest";
import { Departures } from "../../../src/gateway/publish/departures.ts";
import { takeExpired } from "../../../src/gateway/publish/expiry.ts";
import { Frame, FrameQueue } from "../../../src/gateway/publish/frame.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";

const stream = new StreamStates("test", 1).of("live", 0);
const options = { framesUnackedMax: 64, monotonicMs: () => 0 };
const queue = new FrameQueue(stream, new Departures(stream, options), {
  lane: "live",
  subject: "test.live.0.alpha",
  background: false,
});
const waiters = fc.array(
  fc.record({ bytes: fc.integer({ min: 1, max: 30 }), deadlineMs: fc.integer({ min: 0, max: 9 }) }),
  { minLength: 1, maxLength: 8 },
);
const outcomes = fc.array(fc.constantFrom("unknown" as const, "refused" as const), {
  minLength: 10,
  maxLength: 10,
});

test("a frame keeps the events of all requests except expired requests", () => {
  fc.assert(
    fc.property(waiters, outcomes, (all, outcomeAt) => {
      const frame = new Frame(queue, Buffer.alloc(4_096));
      const lines = all.map(({ bytes }, number) => `${String(number).repeat(bytes)}\n`);
      const heard = all.map(() => [] as [number, number][]);
      for (const [number, { deadlineMs }] of all.entries()) {
        frame.commit(frame.length + frame.buffer.write(lines[number]!, frame.length), 1);
        frame.join(
          {
            frameSettled: (_outcome, _code, events, bytes) =>
              void heard[number]!.push([events, bytes]),
          },
          deadlineMs,
        );
      }
      const refused = new Set<number>();
      for (let nowMs = 0; nowMs < 10; nowMs++) {
        const outcome = outcomeAt[nowMs]!;
        const gone = takeExpired(frame, nowMs, { outcome, code: "timeout" });
        for (const [place, waiter] of gone.waiters.entries())
          waiter.frameSettled(outcome, "timeout", ...joinAt(gone.joins, place), 0);
        for (const [number, { deadlineMs }] of all.entries())
          if (outcome === "refused" && deadlineMs === nowMs) refused.add(number);
        const left = lines.filter((_line, number) => !refused.has(number));
        expect(frame.buffer.toString("latin1", 0, frame.length)).toBe(left.join(""));
        expect([frame.events, frame.joinedBytes]).toEqual([left.length, frame.length]);
        const waiting = all.filter(({ deadlineMs }) => deadlineMs > nowMs);
        expect(frame.deadlineMs).toBe(Math.min(...waiting.map(({ deadlineMs }) => deadlineMs)));
      }
      expect(heard).toEqual(lines.map((line) => [[1, line.length]]));
      // A waiter that settled earlier may have left its lines in the frame. The frame does not
      // notify it again.
      for (const [place, waiter] of frame.waiters.entries())
        waiter.frameSettled("stored", undefined, ...joinAt(frame.joins, place), 0);
      expect(heard.flat()).toHaveLength(all.length);
    }),
  );
});

function joinAt(joins: readonly number[], place: number): [events: number, bytes: number] {
  return [joins[place * 3 + 1]!, joins[place * 3 + 2]!];
}
