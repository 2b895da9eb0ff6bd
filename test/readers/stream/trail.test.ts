import { expect, test } from "vitest";
import { resume } from "../../../src/readers/stream/resume.ts";
import type { AskedStream } from "../../../src/readers/stream/stored-stream.ts";
import { reportedTo, trailReportedTo, trailWith } from "../../../src/readers/stream/trail.ts";

const entry = (sequence: number) => ({ sequence, messageId: `m${sequence}`, storedAtMs: sequence });
const empty: AskedStream = {
  state: async () => undefined,
  message: async () => undefined,
  messageFrom: async () => undefined,
};

test("the position of a reader remembers reported messages until it has passed them", () => {
  const before = [entry(1), entry(2)];
  let trail = [...trailReportedTo(before, 8)];
  expect(reportedTo({ sequence: 2, trail: before })).toBe(0);
  for (const sequence of [4, 6]) {
    trail = trailWith(trail, entry(sequence));
    expect([reportedTo({ sequence, trail }), trail.length]).toEqual([8, 3]);
  }
  trail = trailWith(trail, entry(9));
  expect(reportedTo({ sequence: 9, trail })).toBe(0);
  expect(trail.map(({ sequence }) => sequence)).toEqual([1, 2, 8, 9]);
});

test("of the messages that have expired, only unreported ones count as missed", async () => {
  const place = { epoch: 1, created: "monday", sequence: 4, trail: trailReportedTo([], 8) };
  const state = { created: "monday", firstSequence: 12, lastSequence: 20, beginsAt: 1 };
  const { incidents } = await resume(place, empty, state, { acceptExpired: false });
  expect(incidents).toMatchObject([{ kind: "expired_unread", sequence: 8, messages: 3 }]);
});
