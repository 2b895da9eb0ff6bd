import { expect, test } from "vitest";
import { PropertyBag, Refused } from "../../../src/effects/people/property-bag.ts";
import type { PropertyWrites, Stamp } from "../../../src/effects/types.ts";

function stampOf(timeMs: number): Stamp {
  return { timeMs, rank: `r${timeMs}` };
}

function setting(...names: string[]): PropertyWrites {
  return { once: [], set: names.map((name) => [name, "1"] as const), unset: [] };
}

test("it has so many properties, of which those that are unset count too", () => {
  const bag = new PropertyBag();
  const refused = new Refused();
  const room = { bytesMax: 10_000, countMax: 2, refused };
  bag.write(setting("b", "a", "c"), stampOf(1), room);
  expect(refused).toEqual({ count: 1, first: "c" });
  bag.write({ once: [], set: [], unset: ["a"] }, stampOf(2), room);
  bag.write(setting("c"), stampOf(3), room);
  expect(refused.count).toBe(2);
  bag.write(setting("a"), stampOf(4), room);
  expect(refused.count).toBe(2);
  expect(bag.columns().json).toBe('{"a":1,"b":1}');
});

test("what columns it gave stays, and it goes on from them as another one would", () => {
  const room = { bytesMax: 10_000, countMax: 10, refused: new Refused() };
  const bag = new PropertyBag();
  bag.write(setting("a"), stampOf(2), room);
  const before = bag.columns();
  const other = new PropertyBag(before, bag.bytes);
  for (const one of [bag, other]) {
    expect(one.write(setting("a"), stampOf(1), room)).toBe(false);
    expect(one.columns()).toEqual(before);
    expect(one.write(setting("b"), stampOf(3), room)).toBe(true);
  }
  expect(before.json).toBe('{"a":1}');
  expect(other.columns()).toEqual(bag.columns());
  expect(other.bytes).toBe(bag.bytes);
});

test("it weighs little more than its text until somebody writes to it", () => {
  const names = Array.from({ length: 100 }, (_, at) => `name ${at}`);
  const room = { bytesMax: 100_000, countMax: 100, refused: new Refused() };
  const bag = new PropertyBag();
  bag.write(setting(...names), stampOf(1), room);
  const written = bag.weight;
  const { json, state } = bag.columns();
  expect(bag.weight).toBe(json.length + state.length);
  expect(written).toBeGreaterThan(5 * bag.weight);
});
