import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { IdSketch } from "../../../../src/readers/effects/usage/id-sketch.ts";
import { idHashOf } from "../line-kit.ts";

function add(sketch: IdSketch, id: string): boolean {
  const { idHashHigh, idHashLow } = idHashOf(id);
  return sketch.add(idHashHigh, idHashLow);
}

function sketchOf(ids: Iterable<string>): IdSketch {
  const sketch = new IdSketch();
  for (const id of ids) add(sketch, id);
  return sketch;
}

function* numbered(total: number, name: (at: number) => string): Generator<string> {
  for (let at = 0; at < total; at++) yield name(at);
}

const kindsOfIds: Record<string, (at: number) => string> = {
  "numbers in a row": String,
  "numbers that end alike": (at) => `${at}000`,
  "one letter apart": (at) => String.fromCharCode(0x100 + (at % 5_000)).repeat(1 + at / 5_000),
  uuids: (at) => createHash("md5").update(String(at)).digest("hex"),
  "addresses with a long common part": (at) => `a.very.long.common.name+${at}@example.com`,
};

test.each(Object.entries(kindsOfIds))(
  "a sketch estimates %s with an error below 9.2 %",
  (_, name) => {
    for (const total of [1, 10, 100, 1_000, 3_000, 5_000, 10_000, 50_000]) {
      const error = sketchOf(numbered(total, name)).estimate() / total - 1;
      // Four standard deviations: 4 × 1.04 / √2048.
      expect(Math.abs(error), `${total} ids`).toBeLessThan(0.092);
    }
  },
);

test("a sketch of many ids has the error of 2,048 registers", () => {
  const errors = [...numbered(150, String)].map((set) => {
    const total = 500 + 40 * Number(set);
    return sketchOf(numbered(total, (at) => `${set}:${at}`)).estimate() / total - 1;
  });
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  const deviation = Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0) / errors.length);
  expect(Math.abs(mean)).toBeLessThan(0.005);
  expect(deviation).toBeLessThan(0.025);
});

test("estimates the exact number of ids if there are only a few", () => {
  expect(new IdSketch().estimate()).toBe(0);
  for (const total of [1, 2, 5]) expect(sketchOf(numbered(total, String)).estimate()).toBe(total);
});

test("joined sketches equal the sketch of all ids", () => {
  const parts = fc.array(fc.tuple(fc.nat(1_000), fc.nat(600)), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(parts, (ranges) => {
      const idsOf = ([from, total]: [number, number]) => numbered(total, (at) => `id ${from + at}`);
      const all = new IdSketch();
      for (const range of ranges) for (const id of idsOf(range)) add(all, id);
      const joined = new IdSketch();
      for (const range of ranges.toReversed())
        joined.join(IdSketch.from(sketchOf(idsOf(range)).bytes()));
      expect(Buffer.from(joined.bytes())).toEqual(Buffer.from(all.bytes()));
      expect(joined.estimate()).toBe(all.estimate());
      expect(joined.join(all)).toBe(false);
    }),
    { numRuns: 50 },
  );
});

test("a sketch takes few bytes for few ids", () => {
  expect(sketchOf(numbered(10, String)).bytes()).toHaveLength(30);
  expect(sketchOf(numbered(100_000, String)).bytes()).toHaveLength(2_048);
  expect(() => IdSketch.from(new Uint8Array(1_000))).toThrow(RangeError);
});
