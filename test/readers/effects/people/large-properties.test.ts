import fc from "fast-check";
import { expect, test } from "vitest";
import { People, type PeopleChanges } from "../../../../src/readers/effects/people/people.ts";
import { LargeProperties } from "../../../../src/readers/effects/people/property-bag.ts";
import type { EventEffect } from "../../../../src/readers/effects/types.ts";
import { applyBatch, effectOf, projectId, Rows } from "./rows.ts";

const kibibyte = 1_024;
const json = (bytes: number): string => JSON.stringify("x".repeat(bytes - 2));

function worldOf(options: ConstructorParameters<typeof People>[0]) {
  const rows = new Rows();
  const people = new People(options);
  const run = (...effects: EventEffect[]): PeopleChanges => {
    const changes = applyBatch(people, rows, effects);
    rows.write(changes);
    people.committed();
    return changes;
  };
  return { rows, people, run };
}

function countedIn(rows: Rows): number {
  const persons = [...rows.members.values()].map(({ person }) => person?.propertyBytes ?? 0);
  const groups = [...rows.groups.values()].map(({ propertyBytes }) => propertyBytes);
  return [...persons, ...groups].filter((bytes) => bytes > 65_536).reduce((a, b) => a + b, 0);
}

test("the limit of large properties does not reject small properties", () => {
  const large = new LargeProperties(200_000);
  expect(large.hasRoom("a", 0, 65_536)).toBe(true);
  large.move("a", 0, 65_536);
  expect(large.takeChanged()).toEqual([]);
  expect(large.hasRoom("a", 65_536, 200_001)).toBe(false);
  large.move("a", 65_536, 150_000);
  expect(large.takeChanged()).toEqual([{ projectId: "a", bytes: 150_000 }]);
  expect(large.hasRoom("a", 60_000, 65_537)).toBe(false);
  expect(large.hasRoom("a", 60_000, 65_536)).toBe(true);
  expect(large.hasRoom("b", 0, 200_000)).toBe(true);
  large.move("a", 150_000, 10);
  expect(large.takeChanged()).toEqual([{ projectId: "a", bytes: 0 }]);
  large.begin([{ projectId: "b", bytes: 199_999 }]);
  expect(large.hasRoom("b", 65_536, 65_537)).toBe(false);
  expect(large.hasRoom("a", 0, 200_000)).toBe(true);
});

test("a property is rejected if the project's large properties are full", () => {
  const { rows, run } = worldOf({ largeBytesMax: 150 * kibibyte });
  let at = 0;
  const set = (distinctId: string, name: string, kibibytes: number) =>
    run(
      effectOf({
        timeMs: ++at,
        distinctId,
        person: { set: [[name, json(kibibytes * kibibyte)]] },
      }),
    );
  expect(set("a", "one", 100).rejected).toEqual([]);
  expect(set("b", "one", 60).rejected).toEqual([]);
  expect(set("b", "two", 10).rejected).toMatchObject([
    { reason: "person_full", detail: expect.stringContaining("two") },
  ]);
  expect(set("b", "one", 61).rejected).toEqual([]);
  expect(set("a", "one", 10).rejected).toEqual([]);
  expect(rows.largeProperties.get(projectId)?.bytes).toBe(0);
  expect(set("b", "two", 10).rejected).toEqual([]);
  expect(rows.largeProperties.get(projectId)?.bytes).toBe(countedIn(rows));
});

test("the large properties of a group count like the large properties of a person", () => {
  const { rows, run } = worldOf({ largeBytesMax: 150 * kibibyte });
  const groupOf = (key: string) =>
    effectOf({
      timeMs: 1,
      group: {
        type: "team",
        key,
        set: { once: [], set: [["x", json(100 * kibibyte)]], unset: [] },
      },
    });
  expect(run(groupOf("a")).rejected).toEqual([]);
  expect(run(groupOf("b")).rejected).toMatchObject([{ reason: "group_full" }]);
  expect(rows.largeProperties.get(projectId)?.bytes).toBe(countedIn(rows));
});

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("set" as const),
      id: fc.constantFrom("a", "b", "c", "d"),
      name: fc.constantFrom("one", "two", "three"),
      kibibytes: fc.constantFrom(1, 30, 50, 70),
    }),
    fc.record({
      kind: fc.constant("merge" as const),
      from: fc.constantFrom("a", "b", "c", "d"),
      to: fc.constantFrom("a", "b", "c", "d"),
    }),
    fc.record({ kind: fc.constant("fail" as const) }),
  ),
  { maxLength: 20 },
);

test("the counted bytes of large properties match the stored rows", () => {
  fc.assert(
    fc.property(steps, fc.constantFrom(1, 1e6), (some, cacheBytesMax) => {
      const { rows, people, run } = worldOf({ largeBytesMax: 200 * kibibyte, cacheBytesMax });
      let timeMs = 0;
      for (const step of some) {
        timeMs++;
        if (step.kind === "fail") {
          applyBatch(people, rows, [
            effectOf({ timeMs, distinctId: "a", person: { set: [["lost", json(90_000)]] } }),
          ]);
          people.begin([...rows.largeProperties.values()]);
        } else if (step.kind === "set") {
          const { id: distinctId, name, kibibytes } = step;
          const set = [[name, json(kibibytes * kibibyte)] as const];
          run(effectOf({ timeMs, distinctId, person: { set } }));
        } else {
          const link = { kind: "merge", from: step.from, to: step.to } as const;
          run(effectOf({ timeMs, distinctId: step.from, link }));
        }
        const counted = rows.largeProperties.get(projectId)?.bytes ?? 0;
        expect(counted).toBe(countedIn(rows));
        expect(counted).toBeLessThanOrEqual(200 * kibibyte);
      }
    }),
    { numRuns: 150 },
  );
});
