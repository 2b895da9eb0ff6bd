import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { People, type PeopleChanges } from "../../../../src/readers/effects/people/people.ts";
import type {
  EventEffect,
  LinkKind,
  PropertyWrites,
} from "../../../../src/readers/effects/types.ts";
import { naive, shownBy } from "./oracle.ts";
import { applyBatch, effectOf, Rows, type Step } from "./rows.ts";

const halfHourMs = 1_800_000;

// Few ids, names and times, so that most events affect each other.
const ids = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "guest");
const names = fc.constantFrom("plan", "name", "__proto__");
const values = fc.constantFrom("1", '"two"', "3.0");
const pairs = fc.array(fc.tuple(names, values), { maxLength: 2 });
const writes: fc.Arbitrary<PropertyWrites> = fc.record({
  once: pairs,
  set: pairs,
  unset: fc.array(names, { maxLength: 1 }),
});
const groupNames = fc.record({
  type: fc.constantFrom("company", "team"),
  key: fc.constantFrom("x", "y"),
});

function steps(kinds: readonly LinkKind[]): fc.Arbitrary<Step> {
  const timeMs = fc.nat(8).map((count) => count * halfHourMs);
  const link = fc
    .record({ kind: fc.constantFrom(...kinds), from: ids, to: ids, timeMs, person: writes })
    .map(({ kind, from, to, ...step }) => {
      return { ...step, distinctId: kind === "identify" ? to : from, link: { kind, from, to } };
    });
  const group = fc
    .record({ timeMs, name: groupNames, set: writes })
    .map(({ name, set, ...step }) => ({ ...step, group: { ...name, set } }));
  return fc.oneof(
    fc.record({ timeMs, distinctId: ids }),
    fc.record({ timeMs, distinctId: ids, person: writes }),
    fc.record({ timeMs, distinctId: ids, memberOf: fc.array(groupNames, { maxLength: 2 }) }),
    link,
    link,
    group,
  );
}

function histories(kinds: readonly LinkKind[]): fc.Arbitrary<EventEffect[]> {
  const frames = fc.record({
    lane: fc.constantFrom("live" as const, "historical" as const),
    steps: fc.array(steps(kinds), { minLength: 1, maxLength: 3 }),
  });
  return fc
    .array(frames, { maxLength: 20, size: "max" })
    .map((list) =>
      list.flatMap(({ lane, steps: lines }, sequence) =>
        lines.map((step, line) => effectOf({ ...step, place: { lane, sequence, line } })),
      ),
    );
}

const ways = fc.record({
  cut: fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
  next: fc.infiniteStream(
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("commit" as const) },
      { weight: 6, arbitrary: fc.constant("go on" as const) },
      { weight: 1, arbitrary: fc.constant("fail" as const) },
    ),
  ),
  cacheBytesMax: fc.constantFrom(1, 3_000, 1_000_000),
});
type Way = typeof ways extends fc.Arbitrary<infer T> ? T : never;

function applied(effects: readonly EventEffect[], way: Way, idsMax: number): Rows {
  const rows = new Rows();
  const people = new People({ cacheBytesMax: way.cacheBytesMax, idsMax });
  const waiting: { from: number; changes: PeopleChanges }[] = [];
  const commit = () => {
    const oldest = waiting.shift();
    if (oldest === undefined) return;
    rows.write(oldest.changes);
    people.committed();
  };
  let at = 0;
  let failures = 0;
  while (at < effects.length) {
    const batch = effects.slice(at, at + (way.cut.next().value ?? 1));
    waiting.push({ from: at, changes: applyBatch(people, rows, batch) });
    at += batch.length;
    const next = way.next.next().value;
    if (next === "commit") commit();
    if (waiting.length > 3) commit();
    if (next !== "fail" || failures++ > 5) continue;
    at = waiting[0]?.from ?? at;
    waiting.length = 0;
    people.begin([...rows.largeProperties.values()]);
  }
  while (waiting.length > 0) commit();
  return rows;
}

function shuffled<T>(list: readonly T[], keys: Iterator<number>): T[] {
  return list
    .map((item) => ({ item, key: keys.next().value ?? 0 }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

const keys = fc.infiniteStream(fc.nat());

describe("people", () => {
  test("are the same for any order of events without refused links", () => {
    fc.assert(
      fc.property(histories(["merge"]), keys, ways, (effects, key, way) => {
        const linkOrder = effects.filter(({ link }) => link !== undefined);
        const expected = naive(effects, { linkOrder, idsMax: 100 });
        const twice = effects.concat(effects.filter((_, index) => index % 3 === 0));
        const shown = shownBy(applied(shuffled(twice, key), way, 100));
        // The order of several links determines which link merges persons, and which link has the
        // outcome `already_one`.
        expect({ ...shown, outcomes: [] }).toEqual({ ...expected, outcomes: [] });
      }),
      { numRuns: 200 },
    );
  });

  test("are the same for any order that keeps the order of links", () => {
    const kinds = ["identify", "alias", "merge"] as const;
    const caps = fc.constantFrom(2, 3, 100);
    fc.assert(
      fc.property(histories(kinds), keys, ways, caps, (effects, key, way, idsMax) => {
        const order = shuffled(effects, key);
        const linkOrder = shuffled(effects, key).filter(({ link }) => link !== undefined);
        const links = linkOrder.values();
        const inOrder = order.map((effect) => (effect.link ? links.next().value! : effect));
        const expected = naive(effects, { linkOrder, idsMax });
        expect(shownBy(applied(inOrder, way, idsMax))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });
});
