// The rule of shares as such: whoever has little is never over its share, a flood ends at its own,
// and however many flood, each at its share, something stays free for the next one.

import { describe, expect, test } from "vitest";
import { mayHaveBytes } from "../../src/streams/share-rule.ts";

const bytesMax = 1_000_000;
/** Of a stream: what is added at a time. */
const step = bytesMax / 10_000;

/** All of them add until none may any more; what each has then, and what is free. */
function flooded(
  floods: number,
  options: { share: number; others: number; bytesOfOthers: number },
) {
  const { share, others, bytesOfOthers } = options;
  const has = Array<number>(floods).fill(0);
  let bytesFree = bytesMax - bytesOfOthers;
  const projects = floods + others;
  for (let added = true; added; ) {
    added = false;
    has.forEach((bytes, at) => {
      if (bytes > mayHaveBytes({ bytesMax, bytesFree, projects }, share)) return;
      has[at] = bytes + step;
      bytesFree -= step;
      added = true;
    });
  }
  return { has, bytesFree };
}

describe("a share leaves room for others", () => {
  test.each([
    { floods: 1, part: 0.75 },
    { floods: 2, part: 0.4286 },
    { floods: 3, part: 0.3 },
    { floods: 10, part: 0.0968 },
  ])("$floods that flood come to $part of the stream each", ({ floods, part }) => {
    const { has, bytesFree } = flooded(floods, { share: 75, others: 0, bytesOfOthers: 0 });
    for (const bytes of has) expect(Math.abs(bytes / bytesMax - part)).toBeLessThan(0.002);
    expect(bytesFree / bytesMax).toBeGreaterThan((1 - part * floods) * 0.9 - 0.001);
  });

  test.each([1, 10, 50, 75, 90, 99])(
    "with a share of %d %% something stays free, however many flood",
    (share) => {
      for (const floods of [1, 2, 5, 20, 64]) {
        for (const others of [0, 1, 30]) {
          const { has, bytesFree } = flooded(floods, {
            share,
            others,
            bytesOfOthers: others * step,
          });
          const times = share / (100 - share);
          const least = bytesMax / (1 + times * (floods + others));
          // Each can go over by what it adds at a time; of more than 64 nobody's part is made
          // smaller.
          if (floods + others <= 64) expect(bytesFree).toBeGreaterThan(least - 2 * floods * step);
          for (const bytes of has)
            expect(bytes).toBeLessThanOrEqual((bytesMax * share) / 100 + step);
        }
      }
    },
  );

  test("what others have filled makes nobody be over that has little", () => {
    for (const projects of [1, 2, 5, 64, 1_000, 100_000]) {
      for (const bytesFree of [0, -bytesMax, step]) {
        const mayHave = mayHaveBytes({ bytesMax, bytesFree, projects }, 75);
        expect(mayHave).toBeGreaterThan(bytesMax / 66);
        // No more than an even part, so that it takes all of them to fill the stream.
        expect(mayHave).toBeLessThan(
          Math.max(bytesMax / Math.min(projects, 64), 3 * bytesFree + 1),
        );
      }
    }
  });

  test("an empty stream, or one whose projects are not told, gives one project its share", () => {
    for (const projects of [0, 1])
      expect(mayHaveBytes({ bytesMax, bytesFree: 0, projects }, 75)).toBe(0.75 * bytesMax);
    expect(mayHaveBytes({ bytesMax, bytesFree: bytesMax, projects: 0 }, 75)).toBe(3 * bytesMax);
  });
});
