import { expect, test } from "vitest";
import { lostAnswers } from "../../faults/lost-answers.ts";

const closings = [
  { fromMs: 1_000, toMs: 1_500 },
  { fromMs: 3_000, toMs: Number.POSITIVE_INFINITY },
];

test("a request without an answer counts as lost on an open connection", () => {
  expect(lostAnswers([999, 1_500, 2_999], closings, 2)).toEqual([
    "3 requests got no answer, of at most 2",
  ]);
  expect(lostAnswers([999, 1_500], closings, 2)).toEqual([]);
});

test("a request without an answer is not lost on a closed connection", () => {
  expect(lostAnswers([1_000, 1_499, 3_000, 9_000], closings, 0)).toEqual([]);
});

test("requests without an answer are not limited if no limit is given", () => {
  expect(lostAnswers([999], closings, undefined)).toEqual([]);
  expect(lostAnswers([999], [], 0)).toEqual(["1 requests got no answer, of at most 0"]);
});
