import fc from "fast-check";
import { expect, test } from "vitest";
import { proposal } from "../../src/commands/rules/schema.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { isSdkProperty } from "../../src/rules/event-schema.ts";
import { parseRules, parseRulesBytes } from "../../src/rules/parse.ts";
import { learnedPropertiesMax, SchemaLearner } from "../../src/rules/schema-learner.ts";
import { codePoint } from "../kit/code-points.ts";
import { take } from "../kit/items.ts";

interface Sent {
  readonly person: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

const place = { event: "order", version: 1, since: "2026-01-01T00:00:00.000Z" };

function learned(events: readonly Sent[], name = place.event): string {
  const learner = new SchemaLearner();
  for (const { person, properties } of events) learner.add(properties, person);
  return proposal(learner.result(), { ...place, event: name });
}

const personal = "jane@example.com";
const value = fc.oneof(
  fc.constantFrom<unknown>("free", "pro", "yes", "null", "1.5", "", personal, `${personal} text`),
  fc.constantFrom<unknown>(null, true, 0, 1, 1.5, [], [1], {}, { a: personal }),
);
const names = [
  "plan",
  "total",
  "a.b",
  "yes",
  "ü",
  'q"',
  "email",
  "$lib",
  "token",
  "<<",
  "__proto__",
];
const event: fc.Arbitrary<Sent> = fc.record({
  person: fc.constantFrom("p1", "p2", "p3", "p4", personal),
  properties: fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 }),
});

test("a proposal is a valid rules file that accepts all events from which it was learned", () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 60 }), (events) => {
      const text = learned(events);
      expect(text).not.toContain("jane");
      const parsed = parseRules(text);
      if ("errors" in parsed) throw new Error(`${text}\n${JSON.stringify(parsed.errors)}`);
      const [schema] = parsed.rules.schemas;
      const rules = compileRules(
        { ...parsed.rules, schemas: [{ ...schema!, mode: "stamp" }] },
        { version: 1, secret: Buffer.from("secret") },
      );
      const batch = events.map(({ person, properties }) => ({
        event: "order",
        distinct_id: person,
        properties,
      }));
      const { records } = take({ batch }, { rules });
      expect(records.map((record) => record["schema"])).toEqual(
        events.map(() => ({ version: 1, ok: true })),
      );
    }),
    { numRuns: 200 },
  );
});

const oddUnit = fc.oneof(
  codePoint,
  fc.constantFrom(
    ..."\u007f\u0085\u00a0\u00ad\u2028\u2029\ufeff\udfff\ud800\t\n\r \\\"':#-?,[]{}&*!|>%@`~",
  ),
);
const oddName = fc.oneof(
  { weight: 9, arbitrary: fc.string({ unit: oddUnit, minLength: 1, maxLength: 20 }) },
  { weight: 1, arbitrary: fc.constantFrom("<<", "null", "~", "1.10", "yes") },
);

test("a proposal is a valid rules file with the names of the event and of its properties", () => {
  fc.assert(
    fc.property(fc.uniqueArray(oddName, { minLength: 1, maxLength: 10 }), (odd) => {
      const learnable = odd.filter((name) => !isSdkProperty(name));
      const properties = Object.fromEntries(odd.map((name) => [name, 1]));
      const sent = Array.from({ length: 20 }, () => ({ person: "p1", properties }));
      // A schema has no globs.
      const event = odd[0]!.replaceAll("*", "x");
      const text = learned(sent, event);
      const parsed = parseRulesBytes(Buffer.from(text));
      if ("errors" in parsed) throw new Error(`${text}\n${JSON.stringify(parsed.errors)}`);
      const [schema] = parsed.rules.schemas;
      expect(schema!.event).toBe(event);
      const read = schema!.properties as { properties?: object; required?: string[] };
      expect(Object.keys(read.properties ?? {}).sort()).toEqual(learnable.sort());
      expect(read.required ?? []).toEqual(expect.arrayContaining(learnable));
    }),
    { numRuns: 500 },
  );
});

const people = (count: number, properties: (n: number) => Sent["properties"]): Sent[] =>
  Array.from({ length: count }, (_, n) => ({ person: `p${n}`, properties: properties(n) }));

test("a property becomes required and an enum only after enough events of several people", () => {
  const text = learned(
    people(30, (n) => ({
      plan: n % 2 === 0 ? "free" : "pro",
      total: n,
      $lib: "web",
      email: "work",
      rare: n === 0 ? "once" : "often",
      ...(n < 15 ? { coupon: n === 3 ? null : 0.5 } : {}),
    })),
  );
  expect(
    text,
  ).toBe(`# Learned from 30 events since 2026-01-01T00:00:00.000Z. Check each property before you use it.

schemas:
  - event: "order"
    version: 1
    mode: "observe"
    properties:
      type: "object"
      required:
        - "email"
        - "plan"
        - "rare"
        - "total"
      properties:
        # in 30 of 30 events
        email:
          type: "string"
        # in 30 of 30 events
        plan:
          enum:
            - "free"
            - "pro"
        # in 30 of 30 events
        rare:
          type: "string"
        # in 30 of 30 events
        total:
          type: "integer"
        # in 15 of 30 events
        coupon:
          type:
            - "null"
            - "number"
`);
  expect(learned(people(3, () => ({ plan: "free" })))).not.toMatch(/required|enum/);
});

test("a proposal has at most 100 properties, the most frequent ones", () => {
  const learner = new SchemaLearner();
  for (const { person, properties } of people(2, (n) => ({
    ...Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`p${n}-${at}`, 1])),
    common: 1,
  })))
    learner.add(properties, person);
  const { properties, omitted } = learner.result();
  expect([properties.length, properties[0]?.name, omitted]).toEqual([
    learnedPropertiesMax,
    "common",
    201,
  ]);
});

test("a proposal states how many events have each property, whatever its name", () => {
  const text = learned(
    people(20, (n) => ({ plan: "free", "<<": n, ...(n === 0 ? { 2024: 1 } : {}) })),
  );
  const countOf = (name: string) =>
    new RegExp(`# in (\\d+) of 20 events\\n\\s*"?${name}"?:`).exec(text)?.[1];
  expect(["plan", "<<", "2024"].map(countOf)).toEqual(["20", "20", "1"]);
});
