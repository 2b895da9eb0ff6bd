// Events without uuids are recognized after a timeout; all other events are stored as they come.

import { expect, test } from "vitest";
import { Departures } from "../../../src/gateway/publish/departures.ts";
import { Frame, FrameQueue, memoryBytesFor } from "../../../src/gateway/publish/frame.ts";
import type { RequestWaiter } from "../../../src/gateway/publish/port.ts";
import { TimedOutEvents, UuidlessLines } from "../../../src/gateway/publish/timed-out-events.ts";
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
  const options = { lane: "live", subject: "s", window: 2, background: false } as const;
  const queue = new FrameQueue(stream, departures, options);
  const named: string[] = [];
  const events = new TimedOutEvents({
    monotonicMs: () => now,
    identify: (record) => {
      named.push(record.toString());
      return record.toString();
    },
  });
  const ends: ((isStored: boolean) => void)[] = [];
  const request = (projectId: string, runs: SentWithRuns): UuidlessLines =>
    new UuidlessLines(
      {
        frameSettled() {},
        expectFrame() {},
        whenEnded: (callback) => void ends.push(callback),
      } satisfies RequestWaiter,
      projectId,
      runs,
    );
  const frameOf = (text: string): Frame => {
    const frame = new Frame(queue, Buffer.alloc(memoryBytesFor(text.length)));
    frame.commit(frame.buffer.write(text, "latin1"), text.split("\n").length - 1);
    return frame;
  };
  return {
    ...{ events, named, ends },
    wait: (ms: number): void => {
      now += ms;
    },
    /** The lines of a request time out. */
    timeOut(projectId: string, text: string, runs = allUuidless): Frame {
      const frame = frameOf(text);
      events.remember(frame, request(projectId, runs), { start: 0, end: frame.length });
      return frame;
    },
    /** The lines come again. Returns those that are left to be stored. */
    send(projectId: string, text: string, runs = allUuidless): string {
      if (!events.has(projectId)) return text;
      const frame = frameOf(text);
      const lines = request(projectId, runs);
      events.takeOut(frame, lines);
      expect(frame.events).toBe(
        frame.buffer.toString("latin1", 0, frame.length).split("\n").length - 1,
      );
      return frame.buffer.toString("latin1", 0, frame.length);
    },
  };
}

test("an event with a uuid is never taken out, even if a line without a uuid has the same identity", () => {
  const { timeOut, send } = rig();
  timeOut("p", "a\nb\nc\n", [1, SentWith.Neither, 2, SentWith.Uuid]);
  expect(send("p", "a\nb\nc\n", [])).toBe("a\nb\nc\n");
  expect(send("p", "a\nb\nc\nb\n", [0, SentWith.Time, 2, SentWith.Uuid])).toBe("a\nc\nb\n");
});

test("what is left of a request is remembered as it was sent", () => {
  const { events, timeOut, send } = rig();
  timeOut("p", "b\n");
  const text = "a\nb\nc\n";
  const frame = timeOut("q", "");
  frame.moveTo(Buffer.alloc(memoryBytesFor(text.length)));
  frame.commit(frame.buffer.write(text), 3);
  const lines = new UuidlessLines({ frameSettled() {}, expectFrame() {}, whenEnded() {} }, "p", [
    1,
    SentWith.Time,
  ]);
  events.takeOut(frame, lines);
  events.remember(frame, lines, { start: 0, end: frame.length });
  expect(send("p", "a\nc\n")).toBe("a\n");
});

test("a project is compared with its own events alone, and nothing is named for others", () => {
  const { timeOut, send, named } = rig();
  timeOut("p", "a\n");
  named.length = 0;
  expect(send("q", "a\n")).toBe("a\n");
  expect(named).toEqual([]);
  expect(send("p", "a\n")).toBe("");
  expect(send("p", "a\n")).toBe("a\n");
});

test("events are remembered again if their request fails, and forgotten after the duplicate window", () => {
  const { timeOut, send, ends, wait } = rig();
  timeOut("p", "a\n");
  expect(send("p", "a\n")).toBe("");
  ends.pop()?.(false);
  expect(send("p", "a\n")).toBe("");
  ends.pop()?.(false);
  wait(120_000);
  expect(send("p", "a\n")).toBe("a\n");
});

test("an event of a frame that is not stored is new", () => {
  const { timeOut, send } = rig();
  const frame = timeOut("p", "a\n");
  frame.fate!.frame = undefined;
  expect(send("p", "a\n")).toBe("a\n");
});

test("a line without a line feed ends with the lines of its request", () => {
  const { timeOut, send } = rig();
  timeOut("p", "a\nb");
  expect(send("p", "b")).toBe("");
});

test("the work of one turn and the events of a project have limits", async () => {
  const { timeOut, send, named, wait } = rig();
  const lines = (count: number, from = 0): string =>
    Array.from({ length: count }, (_, index) => `${from + index}\n`).join("");
  timeOut("p", lines(65_000));
  const turn = named.length;
  expect(turn).toBeLessThanOrEqual(4_096);
  for (let turns = 0; turns < 4; turns++) {
    await new Promise(setImmediate);
    timeOut("p", lines(65_000, 100_000 * (turns + 1)));
  }
  expect(named).toHaveLength(4_096);
  await new Promise(setImmediate);
  timeOut("q", "mine\n");
  expect(send("q", "mine\n")).toBe("");
  // Old events make room.
  wait(120_000);
  timeOut("p", "new\n");
  expect(send("p", "new\n")).toBe("");
});
