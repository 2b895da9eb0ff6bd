// Of what goes wrong the last few are kept, and of a flood a few a second.

import { expect, test } from "vitest";
import { createRemarks } from "../../src/observe/remarks.ts";

test("twenty a second, fifty in all", () => {
  let nowMs = 0;
  const remarks = createRemarks({ wallMs: () => nowMs, monotonicMs: () => nowMs });
  for (let second = 0; second < 4; second++) {
    nowMs = second * 1_000;
    for (let index = 0; index < 1_000; index++) {
      remarks.refused("shop", { code: "overloaded", detail: `${second} ${index}` });
    }
  }
  const kept = remarks.latest();
  expect(kept.map(({ detail }) => detail)).toEqual([
    ...Array.from({ length: 10 }, (_, index) => `1 ${index + 10}`),
    ...[2, 3].flatMap((second) => Array.from({ length: 20 }, (_, index) => `${second} ${index}`)),
  ]);
  expect(kept.at(-1)).toEqual({
    atMs: 3_000,
    projectId: "shop",
    status: 503,
    code: "overloaded",
    detail: "3 19",
    events: 0,
  });
});
