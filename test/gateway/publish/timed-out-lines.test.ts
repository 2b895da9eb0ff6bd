import { expect, test } from "vitest";
import { Departures } from "../../../src/gateway/publish/departures.ts";
import { Frame, FrameQueue, memoryBytesFor } from "../../../src/gateway/publish/frame.ts";
import { TimedOutLines, UuidlessLines } from "../../../src/gateway/publish/timed-out-lines.ts";
import { SentWith, type SentWithRuns } from "../../../src/platform/base/sent-with.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";

const allUuidless: SentWithRuns = [0, SentWith.Time];

function rig() {
  let now = 0;
  const stream = new StreamStates("test", 1).of("live", 0);
  const departures = new Departures<Frame>(stream, {
    framesUnackedMax: 64,
    monotonicMs: () => now,
  });
  const options = { lane: "live", subject: "s", background: false } as const;
  const queue = new FrameQueue(stream, departures, options);
  const named: string[] = [];
  const timedOut = new TimedOutLines({
    monotonicMs: () => now,
    identify(record, sentWith) {
      named.push(record.toString());
      return `${sentWith}${record}`;
    },
  });
  const ends: ((isStored: boolean) => void)[] = [];
  const linesBy = (runs: SentWithRuns, senderAddress: string): UuidlessLines =>
    new UuidlessLines(
      { senderAddress, frameSettled() {}, whenEnded: (callback) => void ends.push(callback) },
      runs,
    );
  const frameOf = (text: string): Frame => {
    const frame = new Frame(queue, Buffer.alloc(memoryBytesFor(text.length)));
    frame.commit(frame.buffer.write(text, "latin1"), text.split("\n").length - 1);
    return frame;
  };
  return {
    named,
    ends,
    wait: (ms: number): void => {
      now += ms;
    },
    timeOut(text: string, runs = allUuidless, from = "10.0.0.1"): Frame {
      const frame = frameOf(text);
      timedOut.remember(frame, linesBy(runs, from), { start: 0, end: frame.length });
      return frame;
    },
    isKnown(text: string, runs = allUuidless, from = "10.0.0.1"): boolean {
      const frame = frameOf(text);
      const isKnown = timedOut.takeOut(frame, linesBy(runs, from)) !== undefined;
      expect(frame.length).toBe(isKnown ? 0 : text.length);
      return isKnown;
    },
  };
}

test("a retry of events that timed out is recognised once per timeout", () => {
  const { timeOut, isKnown } = rig();
  timeOut("a\nb\n");
  timeOut("a\nb\n");
  expect([isKnown("a\nb\n"), isKnown("a\nb\n"), isKnown("a\nb\n")]).toEqual([true, true, false]);
});

test("a retry with different events, order or fields is not recognised", () => {
  const { timeOut, isKnown } = rig();
  timeOut("a\nb\n");
  for (const text of ["a\n", "a\nb\nc\n", "b\na\n"]) expect(isKnown(text)).toBe(false);
  expect(isKnown("a\nb\n", [1, SentWith.Time])).toBe(false);
  expect(isKnown("a\nb\n")).toBe(true);
});

test("the same events from a different address are not recognised as a retry", () => {
  const { timeOut, isKnown } = rig();
  timeOut("a\n");
  expect(isKnown("a\n", allUuidless, "10.0.0.2")).toBe(false);
  expect(isKnown("a\n")).toBe(true);
});

test("events are not recognised as a retry while nothing has timed out", () => {
  const { timeOut, isKnown, named, wait } = rig();
  expect(isKnown("a\n")).toBe(false);
  timeOut("b\n");
  wait(120_000);
  named.length = 0;
  expect(isKnown("a\n")).toBe(false);
  expect(named).toEqual([]);
});

test("a retry is recognised again after it fails", () => {
  const { timeOut, isKnown, ends, wait } = rig();
  timeOut("a\n");
  expect(isKnown("a\n")).toBe(true);
  ends.pop()?.(false);
  expect(isKnown("a\n")).toBe(true);
  ends.pop()?.(false);
  wait(120_000);
  expect(isKnown("a\n")).toBe(false);
});

test("events are not recognised as a retry if their frame was not stored", () => {
  const { timeOut, isKnown } = rig();
  const frame = timeOut("a\n");
  frame.fate!.frame = undefined;
  expect(isKnown("a\n")).toBe(false);
});

test("recognition of retries is limited per turn of the event loop", async () => {
  const { timeOut, named } = rig();
  for (let request = 0; request < 10_000; request++) timeOut(`${request}\n`);
  expect(named.length).toBeLessThanOrEqual(4_096);
  await new Promise(setImmediate);
  const before = named.length;
  timeOut("a\n");
  expect(named).toHaveLength(before + 1);
});
