// Whether the effects have applied what will be written, judged by what both know of a stream.

import { expect, test } from "vitest";
import {
  type AppliedTo,
  type NeededMessage,
  notApplied,
} from "../../../../src/readers/sinks/persons/applied-check.ts";

const [early, late] = ["2026-11-20T10:00:00.123456789Z", "2026-11-22T10:00:00Z"];
const needed: NeededMessage = { stream: "S", sequence: 7, created: early, messageId: "m-7" };
const applied: AppliedTo = {
  ...{ stream: "S", sequence: 7, epoch: 1, created: early, messageId: "m-7" },
};

test.each<[string, Partial<AppliedTo> | undefined, boolean | undefined]>([
  ["there", {}, undefined],
  ["further, and the message is forgotten", { sequence: 5_000, messageId: undefined }, undefined],
  ["not there yet", { sequence: 6, messageId: undefined }, false],
  ["nothing of it", undefined, false],
  ["another message under that number", { sequence: 9, messageId: "m-x" }, true],
  ["a frame rewritten by an erasure since", { messageId: "rewrite/x/7/y" }, undefined],
  ["recreated while they were running", { created: late, epoch: 2, sequence: 1 }, undefined],
  ["another NATS, or not seen here yet", { created: late, epoch: 1 }, true],
])("%s", (_, found, isOther) => {
  const missing = notApplied([needed], found === undefined ? [] : [{ ...applied, ...found }]);
  expect(missing?.isOther).toBe(isOther);
});

test("waits for a recreated stream that they have not seen, whatever its numbers", () => {
  const recreated = { ...needed, created: late, sequence: 1 };
  expect(notApplied([recreated], [{ ...applied, sequence: 9 }])).toEqual({
    isOther: true,
    why: `they have applied the stream S that was created at ${early}, and this one was created at ${late}`,
  });
});

test("reports the one missing stream of several", () => {
  const other = { ...needed, stream: "T" };
  expect(notApplied([needed, other], [applied])?.why).toBe("they have applied nothing of T yet");
});
