import { expect, test } from "vitest";
import {
  type AppliedTo,
  type NeededMessage,
  notApplied,
} from "../../../../src/readers/sinks/persons/applied-check.ts";

const [early, late] = ["2026-11-20T10:00:00.123456789Z", "2026-11-22T10:00:00Z"];
const needed: NeededMessage = { stream: "S", sequence: 7, created: early, messageId: "m-7" };
const applied: AppliedTo = { stream: "S", sequence: 7, epoch: 1, created: early, messageId: "m-7" };

test.each<[string, Partial<AppliedTo> | undefined, boolean | undefined]>([
  ["the same", {}, undefined],
  ["later, with the message forgotten", { sequence: 5_000, messageId: undefined }, undefined],
  ["earlier", { sequence: 6, messageId: undefined }, false],
  ["missing", undefined, false],
  ["a different message with the same sequence", { sequence: 9, messageId: "m-x" }, true],
  ["a frame that an erasure has rewritten", { messageId: "rewrite/x/7/y" }, undefined],
  [
    "in a stream that was recreated while the effects ran",
    { created: late, epoch: 2, sequence: 1 },
    undefined,
  ],
  ["in a stream of a different NATS server", { created: late, epoch: 1 }, true],
])("a sink compares its batch with the effects' position: %s", (_, found, isOther) => {
  const missing = notApplied([needed], found === undefined ? [] : [{ ...applied, ...found }]);
  expect(missing?.isOther).toBe(isOther);
});

test("a sink checks the streams again if the effects missed a recreated stream", () => {
  const recreated = { ...needed, created: late, sequence: 1 };
  expect(notApplied([recreated], [{ ...applied, sequence: 9 }])).toEqual({
    isOther: true,
    why: `the effects have applied the stream S that was created at ${early}, but the stream was created again at ${late}`,
  });
});

test("a sink that waits for the effects names the missing stream", () => {
  const other = { ...needed, stream: "T" };
  expect(notApplied([needed, other], [applied])?.why).toBe(
    "the effects have applied nothing of T yet",
  );
});
