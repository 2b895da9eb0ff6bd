import fc from "fast-check";
import { expect, test } from "vitest";
import { compileRules } from "../../src/rules/compile.ts";
import { SchemaResult } from "../../src/rules/event-schema.ts";
import { type EventSchema, noPrivacy, type SchemaMode } from "../../src/rules/rules-file.ts";
import { matchesPattern } from "../../src/rules/text-patterns.ts";
import { take } from "../kit/items.ts";
import { compiled, ruleOf, secret } from "./compiled-rules.ts";

const long = "x".repeat(55);
const names = [
  "ping",
  "pin",
  "ping\0",
  "ping ",
  "Ping",
  "scroll",
  "$identify",
  "__proto__",
  "",
  "é",
  "😀",
  `${long}x`,
  `${long}y`,
  `${long}xx`,
  "é".repeat(28),
  `${"é".repeat(28)}x`,
  "\ud800",
  "\ufffd",
];
const name = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...names) },
  fc.nat({ max: 999 }).map((number) => `event ${number} name`),
);

type Event = readonly [text: string, name: string | undefined];

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("")}"`;
}

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 8, arbitrary: name.map((one): Event => [`"event":${JSON.stringify(one)}`, one]) },
  name.map((one): Event => [`"event" : ${JSON.stringify(one)} `, one]),
  name.map((one): Event => [`"event":${escaped(one)}`, one]),
  name.map((one): Event => [`${escaped("event")}:${JSON.stringify(one)}`, one]),
  name.map((one): Event => [`"event":"ping","event":${JSON.stringify(one)}`, one]),
  name.map((one): Event => [`"event":"ping",${escaped("event")}:${JSON.stringify(one)}`, one]),
  name.map((one): Event => [`"event":${JSON.stringify(one)},"properties":{"event":"ping"}`, one]),
  name.map((one): Event => [`"event":${JSON.stringify(one)},"x":{"a":1,"a":2}`, one]),
  fc.constantFrom<Event>(['"event":null', undefined], ['"x":1', undefined], ['"event":1', ""]),
);

const patterns = [
  "ping",
  "pi*\ufffd",
  `${long}x`,
  "é".repeat(28),
  "__proto__",
  "\ufffd",
  "$identify",
  "event 1*",
  "*9 name",
  "event 55 name",
  `*${long}xx`,
];

test("rules for names drop the same events, whether or not the names are known", () => {
  const rules = compiled([
    ruleOf({ event: patterns }, { kind: "drop" }),
    ruleOf({ event: ["scroll", "event 7*"] }, { kind: "sample", share: 1 }),
  ]);
  let dropped = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(event, fc.boolean()), { minLength: 1, maxLength: 30 }),
      fc.boolean(),
      (events, isEngage) => {
        const items = events.map(
          ([[text], hasOddId], index) =>
            `{${text},"distinct_id":${hasOddId ? `{"id":${index}}` : `"${index}"`}}`,
        );
        const expected = events.flatMap(([[, sent], hasOddId], index) => {
          const named = sent ?? (isEngage ? "$identify" : "");
          const stored = named.toWellFormed().replaceAll("\0", "\ufffd");
          const isDropped = patterns.some((pattern) => matchesPattern(pattern, stored));
          if (isDropped) dropped++;
          const id = hasOddId ? `{"id":${index}}` : `${index}`;
          return isDropped || stored === "" ? [] : [{ event: stored, distinct_id: id }];
        });
        for (const body of [`{"batch":[${items.join()}]}`, `[${items.join()}]`]) {
          const records = take(body, { rules, isEngage }).records;
          expect(
            records.map(({ event: stored, distinct_id }) => ({ event: stored, distinct_id })),
          ).toEqual(expected);
        }
      },
    ),
    { numRuns: 500 },
  );
  expect(dropped).toBeGreaterThan(500);
});

test("a name that replaces another in the table of names does not change its rules", () => {
  const rules = compiled([
    ruleOf({ event: ["*0"] }, { kind: "drop" }),
    ruleOf({ event: ["*5"] }, { kind: "rename", event: "renamed" }),
  ]);
  const numbers = Array.from({ length: 3_000 }, (_, index) => index);
  for (let start = 0; start < numbers.length; start += 300) {
    // Names of earlier bodies are between new ones.
    const sent = numbers.slice(start, start + 300).flatMap((number) => [number, number >> 1]);
    for (const part of [sent.slice(0, 300), sent.slice(300)]) {
      const batch = part.map((number) => ({ event: `event ${number}`, distinct_id: "u" }));
      const stored = take({ batch }, { rules }).records.map((record) => record["event"]);
      const expected = part
        .filter((number) => number % 10 !== 0)
        .map((number) => (number % 10 === 5 ? "renamed" : `event ${number}`));
      expect(stored).toEqual(expected);
    }
  }
});

test("a rewritten item with a new name does not change the schemas of the items after it", () => {
  const schemaOf = (event: string, version: number, mode: SchemaMode): EventSchema => ({
    event,
    version,
    mode,
    properties: { required: [`${event} id`] },
  });
  const schemas = [
    schemaOf("order", 3, "stamp"),
    schemaOf("visit", 1, "observe"),
    schemaOf("pay", 4, "stamp"),
  ];
  const rules = compileRules({ rules: [], privacy: noPrivacy, schemas }, { version: 5, secret });
  const sent = schemas.flatMap(({ event }) =>
    [{ [`${event} id`]: 1 }, {}].map((properties) =>
      JSON.stringify({ event, distinct_id: "u", properties }),
    ),
  );
  const rounds = 100;
  for (let round = 0; round < rounds; round++) {
    // After a while, the table of names is full. The names of events with a schema are known.
    const filling = Array.from({ length: 20 }, (_, at) => ({ event: `e${round} ${at}` }));
    take(JSON.stringify({ batch: filling }), { rules });
    take(`[${sent.join()}]`, { rules });
    const rewritten = Array.from(
      { length: 9 },
      (_, at) => String.raw`{"\u0065vent":"new ${round} ${at}","distinct_id":"u"}`,
    );
    const { records } = take(`{"batch":[${[...rewritten, ...sent].join()}]}`, { rules });
    const stamps = records.slice(rewritten.length).map(({ schema }) => schema);
    expect(stamps).toEqual([
      { version: 3, ok: true },
      { version: 3, ok: false, errors: ["order id: is required"] },
      undefined,
      undefined,
      { version: 4, ok: true },
      { version: 4, ok: false, errors: ["pay id: is required"] },
    ]);
  }
  for (const { counts } of rules.schemas) {
    expect(counts[SchemaResult.valid]).toBe(2 * rounds);
    expect(counts[SchemaResult.invalid]).toBe(2 * rounds);
  }
});
