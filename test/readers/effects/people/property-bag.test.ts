import fc from "fast-check";
import { expect, test } from "vitest";
import {
  LargeProperties,
  PropertyBag,
  Refused,
} from "../../../../src/readers/effects/people/property-bag.ts";
import type { PropertyWrites, Stamp } from "../../../../src/readers/effects/types.ts";

function room(bytesMax = 1e6, countMax = 1e3, large = new LargeProperties(1e9)) {
  return { projectId: "demo", large, bytesMax, countMax, refused: new Refused() };
}

function stampOf(n: number): Stamp {
  return { timeMs: Math.floor(n / 3), rank: String(n).padStart(4, "0") };
}

function writesOf(parts: Partial<PropertyWrites>): PropertyWrites {
  return { once: [], set: [], unset: [], ...parts };
}

const name = fc.constantFrom("a", "b", "plan", "é", '"');
const json = fc.constantFrom("1", "1.0", '"x"', "null", "{}");
const named = fc.tuple(name, json);
const writes: fc.Arbitrary<PropertyWrites> = fc.record({
  once: fc.array(named, { maxLength: 2 }),
  set: fc.array(named, { maxLength: 2 }),
  unset: fc.array(name, { maxLength: 1 }),
});
const events = fc.array(writes, { maxLength: 12 }).map((some) =>
  some.map((one, n) => ({
    stamp: stampOf(n),
    writes: { once: [...new Map(one.once)], set: [...new Map(one.set)], unset: one.unset },
  })),
);

function bagOf(some: readonly { writes: PropertyWrites; stamp: Stamp }[]): PropertyBag {
  const bag = new PropertyBag();
  for (const one of some) bag.write(one.writes, one.stamp, room());
  return bag;
}

function said(bag: PropertyBag) {
  const { json, state } = bag.columns();
  return { json, again: new PropertyBag({ json, state }, bag.bytes).size, bytes: bag.bytes };
}

test("a property name counts towards the size limit with its escaped bytes", () => {
  const names = Array.from({ length: 20 }, (_, n) => "\u0001".repeat(300) + n);
  const set = names.map((each) => [each, "1"] as const);
  const tight = room(20 * (160 + 6 * 300));
  const bag = new PropertyBag();
  bag.write(writesOf({ set, unset: ["\u0002"] }), stampOf(1), tight);
  expect(bag.columns().json.length).toBeLessThan(tight.bytesMax);
  expect(tight.refused.count).toBe(1);
  expect(new PropertyBag(bag.columns(), bag.bytes).size).toBe(20);
});

test("a merge rejects the same property names for stored and unstored persons", () => {
  const bags = fc.tuple(events, events, fc.constantFrom(2, 3, 4), fc.constantFrom(340, 520, 1e6));
  fc.assert(
    fc.property(bags, ([some, others, countMax, bytesMax]) => {
      const [ours, theirs] = [bagOf(some), bagOf(others)];
      const stored = (bag: PropertyBag) => new PropertyBag(bag.columns(), bag.bytes);
      const [oursAgain, theirsAgain] = [stored(bagOf(some)), stored(bagOf(others))];
      const [once, again] = [room(bytesMax, countMax), room(bytesMax, countMax)];
      ours.join(theirs, once);
      oursAgain.join(theirsAgain, again);
      expect(said(ours)).toEqual(said(oursAgain));
      expect(once.refused).toEqual(again.refused);
    }),
    { numRuns: 500 },
  );
});

test("property writes give the same result in any order", () => {
  const shuffled = events.chain((some) =>
    fc.record({
      some: fc.constant(some),
      other: fc.shuffledSubarray(some, { minLength: some.length }),
    }),
  );
  fc.assert(
    fc.property(shuffled, ({ some, other }) => {
      expect(said(bagOf(other))).toEqual(said(bagOf(some)));
    }),
  );
});

test("merged properties equal the properties of one person with all writes", () => {
  fc.assert(
    fc.property(events, fc.array(fc.boolean()), (some, sides) => {
      const [ours, theirs] = [true, false].map((side) =>
        bagOf(some.filter((_, at) => (sides[at] ?? true) === side)),
      );
      ours!.join(theirs!, room());
      expect(said(ours!)).toEqual(said(bagOf(some)));
    }),
  );
});

test("properties that were stored and read again accept further writes", () => {
  fc.assert(
    fc.property(events, fc.nat({ max: 12 }), (some, at) => {
      const begun = bagOf(some.slice(0, at));
      const read = new PropertyBag(begun.columns(), begun.bytes);
      for (const one of some.slice(at)) read.write(one.writes, one.stamp, room());
      expect(said(read)).toEqual(said(bagOf(some)));
    }),
  );
});

test("a property has its newest $set or else its oldest $set_once", () => {
  const bag = new PropertyBag();
  const write = (n: number, parts: Partial<PropertyWrites>) =>
    bag.write(writesOf(parts), stampOf(n), room());
  expect(write(5, { once: [["first", "5"]], set: [["plan", '"pro"']] })).toBe(true);
  expect(write(3, { once: [["first", "3"]], set: [["plan", '"free"']] })).toBe(true);
  expect(write(4, { once: [["first", "4"]], set: [["plan", '"trial"']] })).toBe(false);
  expect(bag.columns().json).toBe('{"first":3,"plan":"pro"}');
  expect(write(6, { set: [["plan", "1"]], unset: ["plan"] })).toBe(true);
  expect(bag.columns().json).toBe('{"first":3}');
});

test("a property beyond the size limit is rejected", () => {
  const bag = new PropertyBag();
  const bounded = room(400);
  expect(bag.write(writesOf({ set: [["a", "1"]] }), stampOf(1), bounded)).toBe(true);
  const before = { ...bag.columns(), bytes: bag.bytes };
  const long = JSON.stringify("x".repeat(300));
  expect(bag.write(writesOf({ set: [["long", long]] }), stampOf(2), bounded)).toBe(false);
  expect(bag.write(writesOf({ set: [["b", "2"]] }), stampOf(3), room(400, 1))).toBe(false);
  expect(bounded.refused).toMatchObject({ count: 1, first: "long" });
  expect({ ...bag.columns(), bytes: bag.bytes }).toEqual(before);
});
