import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { slowItemBytesMax } from "../../src/gateway/intake/plain-form.ts";
import { setMembersMax } from "../../src/records/found-members.ts";
import { sampleHash } from "../../src/records/sample-hash.ts";
import { PropertyShift } from "../../src/records/table.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { type CompiledRule, RuleEffect } from "../../src/rules/compiled-rule.ts";
import type { Action, Match, Rule, RuleMode, Scalar } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";
import { compiled, ruleOf, secret } from "./compiled-rules.ts";

const hmac = (text: string) => createHmac("sha256", secret).update(text).digest("hex");
const noEmails = compiled([ruleOf({}, { kind: "remove", paths: ["email", "$set.email"] })]);

/** The properties whose type the table has. */
const typed = Object.keys(PropertyShift).map(
  (name) => `$${name.replace(/(?!^)[A-Z]/g, "_$&").toLowerCase()}`,
);

// `take` compares the rows of changed events with those of a scan.
test.each(typed)("a change of %s is in the row of the changed event", (name) => {
  const actions: Action[] = [
    { kind: "remove", paths: [name] },
    { kind: "hash", paths: [name] },
    { kind: "set", values: new Map([[name, null]]) },
    { kind: "set", values: new Map([[name, "text"]]) },
    { kind: "cut", bytes: new Map([[name, 1]]) },
  ];
  for (const action of name === "$set" ? actions.slice(0, 1) : actions)
    for (const sent of [{ [name]: "long" }, { [name]: "long", x: 1 }, { [name]: { a: 1 } }, {}]) {
      const event = { event: "e", distinct_id: "u", properties: sent };
      const rules = compiled([ruleOf({}, action)]);
      const { records } = take({ batch: [event, event] }, { rules });
      expect(records).toHaveLength(2);
    }
});

describe("a rule for a name holds in every spelling of the event", () => {
  test.each([
    ["escaped name", String.raw`"properties":{"em\u0061il":"a@b","x":1}`],
    ["repeated name", `"properties":{"email":"a@b","email":"c@d","x":1}`],
    ["repeated name, once escaped", String.raw`"properties":{"email":"a@b","x":1,"\u0065mail":1}`],
    ["white space", `"properties" : { "email" : "a@b" , "x" : 1 }`],
    ["line breaks", `"properties":{\n"email"\n:\n"a@b"\n,\n"x":1}`],
    ["only member", `"properties":{"email":"a@b"}`],
    ["last member", `"properties":{"x":1,"email":"a@b"}`],
    ["all members", `"properties":{"email":"a@b","$set":{"email":"a@b"}}`],
    ["object", `"properties":{"email":{"is":"a@b"}}`],
    ["array", `"properties":{"email":["a@b"]}`],
    ["text with quotes and brackets", String.raw`"properties":{"a":"\"email\":{","email":"a@b"}`],
    ["escaped properties", String.raw`"prop\u0065rties":{"email":"a@b"}`],
    ["repeated properties", `"properties":{"x":1},"properties":{"email":"a@b"}`],
    ["$set of the event", `"$set":{"email":"a@b"}`],
    ["$set of both", `"$set":{"email":"a@b"},"properties":{"$set":{"email":"c@d","y":2}}`],
    ["escaped $set", String.raw`"properties":{"$s\u0065t":{"email":"a@b"}}`],
    ["escaped name in $set", String.raw`"$set":{"em\u0061il":"a@b"}`],
    ["$set twice", `"properties":{"$set":{"email":"a@b"},"$set":{"email":"c@d"}}`],
    ["a member batch", `"batch":[{"email":1}],"properties":{"email":"a@b"}`],
    ["U+0000 next to it", String.raw`"properties":{"y":"\u0000","email":"a@b"}`],
  ])("%s", (_, members) => {
    const text = `{"event":"e","distinct_id":"u",${members}}`;
    for (const body of [`{"batch":[${text}]}`, `[${text}]`]) {
      const [record] = take(body, { rules: noEmails }).records;
      const { properties, $set } = record as Record<string, Record<string, unknown>>;
      expect(properties).not.toHaveProperty("email");
      expect(properties!["$set"] ?? {}).not.toHaveProperty("email");
      expect($set ?? {}).not.toHaveProperty("email");
      expect(record!["rules"]).toBe(5);
      expect(JSON.stringify(record)).not.toContain("a@b");
    }
  });

  test("a single event and an event of /engage", () => {
    const event = { $distinct_id: "u", $set: { email: "a@b", plan: "x" } };
    const [record] = take(event, { isEngage: true, rules: noEmails }).records;
    expect(record).toMatchObject({ event: "$identify", $set: { plan: "x" }, rules: 5 });
  });

  test("a body with malformed UTF-8 after its repair", () => {
    const rules = compiled([ruleOf({}, { kind: "remove", paths: ["e\ufffd"] })]);
    const [record] = take(`{"event":"e","distinct_id":"u","properties":{"e\ufffd":1,"x":2}}`, {
      rules,
    }).records;
    expect(record!["properties"]).toEqual({ x: 2 });
  });
});

describe("properties that are not an object", () => {
  const set = compiled([ruleOf({}, { kind: "set", values: new Map([["source", "web"]]) })]);

  test.each([
    ["absent", ""],
    ["null", `,"properties":null`],
    ["an empty array", `,"properties":[ ]`],
    ["an empty object", `,"properties":{ }`],
  ])("%s", (_, members) => {
    const body = `{"event":"e","distinct_id":"u"${members}}`;
    expect(take(body, { rules: set }).records[0]!["properties"]).toEqual({ source: "web" });
    expect(take(body, { rules: noEmails }).records[0]!["properties"]).toEqual({});
  });

  test("any other type is an error of the guards", () => {
    const body = `{"event":"e","distinct_id":"u","properties":"email"}`;
    expect(take(body, { rules: set }).errors).toEqual(["invalid_properties"]);
    expect(take(body, { rules: noEmails }).errors).toEqual(["invalid_properties"]);
  });
});

describe("actions", () => {
  const event = (properties: unknown) => ({ event: "e", distinct_id: "u", properties });
  test("hash replaces texts, numbers, objects and arrays by the HMAC of their text", () => {
    const rules = compiled([ruleOf({}, { kind: "hash", paths: ["a", "b", "c", "d", "e"] })]);
    const sent = event({ a: "tel", b: 42, c: { d: 1 }, d: null, e: "" });
    expect(take(sent, { rules }).records[0]!["properties"]).toEqual({
      a: hmac("tel"),
      b: hmac("42"),
      c: hmac('{"d":1}'),
      d: null,
      e: hmac(""),
    });
  });

  test("remove of $unset removes that of the event and that of its properties", () => {
    const rules = compiled([ruleOf({}, { kind: "remove", paths: ["$unset"] })]);
    const sent = {
      event: "e",
      distinct_id: "u",
      $unset: ["a"],
      properties: { $unset: ["b"], x: 1 },
    };
    expect(take(sent, {}).records[0]!["$unset"]).toEqual(["a", "b"]);
    const [record] = take(sent, { rules }).records;
    expect(record).not.toHaveProperty("$unset");
    expect(record!["properties"]).toEqual({ x: 1 });
    expect(rules.rules[0]!.counts[RuleEffect.changed]).toBe(1);
  });

  test("a value is hashed once by several rules, and again if it is replaced between them", () => {
    const hash = ruleOf({}, { kind: "hash", paths: ["a", "b"] });
    const again = ruleOf({}, { kind: "set", values: new Map([["b", "new"]]) });
    const rules = compiled([hash, hash, again, hash]);
    const body = { event: "e", distinct_id: "u", properties: { a: 'x"y', b: 1 } };
    const [record] = take(body, { rules }).records;
    expect(record!["properties"]).toEqual({ a: hmac('x"y'), b: hmac("new") });
    expect(rules.rules.map(({ counts }) => counts[RuleEffect.changed])).toEqual([1, 0, 1, 1]);
  });

  test("a renamed event is matched by its new name, and gets its new kind", () => {
    const rules = compiled([
      ruleOf({ event: ["view"] }, { kind: "rename", event: "$pageview" }),
      ruleOf({ event: ["view"] }, { kind: "drop" }),
      ruleOf({ event: ["$pageview"] }, { kind: "set", values: new Map([["seen", true]]) }),
    ]);
    const [record] = take({ ...event({ $current_url: "/" }), event: "view" }, { rules }).records;
    expect(record).toMatchObject({ event: "$pageview", kind: "pageview" });
    expect(record!["properties"]).toEqual({ $current_url: "/", seen: true });
  });

  test("an event without its distinct id is dropped by the guards", () => {
    const rules = compiled([ruleOf({}, { kind: "remove", paths: ["distinct_id"] })]);
    const sent = { event: "e", properties: { distinct_id: "u" } };
    expect(take(sent, { rules })).toMatchObject({ dropped: 1, filtered: 0 });
  });
});

describe("samples", () => {
  const rules = compiled([ruleOf({}, { kind: "sample", share: 0.25 })]);
  const stored = (id: unknown, inProperties = false): boolean => {
    const event = inProperties
      ? { event: "e", properties: { distinct_id: id } }
      : { event: "e", distinct_id: id };
    return take(event, { rules }).records.length === 1;
  };

  test("have the share of the distinct ids", () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => `user-${index}`);
    const share =
      ids.filter((id) => sampleHash(Buffer.from(id), 0, id.length) < 0.25 * 2 ** 32).length /
      ids.length;
    expect(share).toBeGreaterThan(0.23);
    expect(share).toBeLessThan(0.27);
  });

  test("do not have the id whose hash is the limit, and several rules sample like the smallest", () => {
    const hash = sampleHash(Buffer.from("u"), 0, 1);
    const conditions = [{}, { properties: new Map([["a", { kind: "absent" as const }]]) }];
    for (const match of conditions) {
      const isStored = (...limits: number[]): boolean => {
        const rules = compiled(
          limits.map((limit) => ruleOf(match, { kind: "sample", share: limit / 2 ** 32 })),
        );
        // The second time, the rules know the name of the event.
        const [first, second] = [1, 2].map(
          () => take({ event: "e", distinct_id: "u" }, { rules }).records.length === 1,
        );
        expect(second).toBe(first);
        return second!;
      };
      expect(isStored(hash)).toBe(false);
      expect(isStored(hash + 1)).toBe(true);
      expect(isStored(hash, hash + 1)).toBe(false);
      expect(isStored(hash + 1, hash)).toBe(false);
    }
  });

  test("hold for events whose names are not known yet, next to rules that edit others", () => {
    const names = ["a", "b", "c"];
    const rules = compiled([
      ruleOf({ event: ["a"] }, { kind: "sample", share: 0.5 }),
      ruleOf({ event: ["b"] }, { kind: "remove", paths: ["email"] }),
    ]);
    const batch = Array.from({ length: 60 }, (_, index) => ({
      event: names[index % 3],
      distinct_id: `u${index}`,
    }));
    const [first, second] = [1, 2].map(() => take({ batch }, { rules }));
    expect(first!.filtered).toBeGreaterThan(0);
    expect(second!.filtered).toBe(first!.filtered);
  });

  test("have the same ids, wherever the id is and however it is spelled", () => {
    for (let id = 0; id < 50; id++) {
      const isStored = stored(String(id));
      expect(stored(id)).toBe(isStored);
      expect(stored(String(id), true)).toBe(isStored);
      expect(stored(id, true)).toBe(isStored);
      const spelled = `{"event":"e","distinct_id":"\\u00${String(id).charCodeAt(0).toString(16)}${String(id).slice(1)}"}`;
      expect(take(spelled, { rules }).records.length === 1).toBe(isStored);
    }
  });
});

describe("conditions", () => {
  test("posthog-js matches events whose $lib is web", () => {
    const rules = compiled([ruleOf({ sdk: ["posthog-js"] }, { kind: "drop" })]);
    const event = (lib: string) => ({ event: "e", distinct_id: "u", properties: { $lib: lib } });
    expect(take(event("web"), { rules }).filtered).toBe(1);
    expect(take(event("posthog-node"), { rules }).filtered).toBe(0);
  });

  test("the User-Agent in the event has precedence over that of the request", () => {
    const rules = compiled([ruleOf({ bot: true }, { kind: "drop" })]);
    const event = (properties: unknown) => ({ event: "e", distinct_id: "u", properties });
    const browser = {
      $raw_user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    };
    const crawler = { $raw_user_agent: "Googlebot/2.1 (+http://www.google.com/bot.html)" };
    expect(take(event({}), { rules, isBot: true }).filtered).toBe(1);
    expect(take(event(browser), { rules, isBot: true }).filtered).toBe(0);
    expect(take(event(crawler), { rules, isBot: false }).filtered).toBe(1);
  });
});

describe("large events", () => {
  const padding = "x".repeat(slowItemBytesMax);
  const event = { event: "big", distinct_id: "u", properties: { padding, email: "a@b" } };

  test("an event that property rules must read has a maximum size", () => {
    expect(take(event, { rules: noEmails }).errors).toEqual(["event_too_large"]);
  });

  test("rules on names apply to events of any size", () => {
    const drop = compiled([ruleOf({ event: ["big"] }, { kind: "drop" })]);
    expect(take(event, { rules: drop }).filtered).toBe(1);
    const other = compiled([ruleOf({ event: ["b"] }, { kind: "remove", paths: ["email"] })]);
    expect(take(event, { rules: other }).records).toHaveLength(1);
  });
});

/** Returns the counts of a rule that are not 0, by effect. */
function countsOf({ counts }: CompiledRule): Record<string, number> {
  const all = Object.entries(RuleEffect).map(
    ([effect, index]) => [effect, counts[index]!] as const,
  );
  return Object.fromEntries(all.filter(([, count]) => count > 0));
}

test("an observed rule only counts what it would do", () => {
  const rules = compiled([
    { ...ruleOf({}, { kind: "remove", paths: ["email"] }), mode: "observe" },
    { ...ruleOf({ event: ["e"] }, { kind: "drop" }), mode: "observe" },
    ruleOf({}, { kind: "remove", paths: ["plan"] }),
  ]);
  const events = [{ email: 1 }, { plan: 1 }, { email: 1, plan: 2 }].map((properties) => ({
    event: "e",
    distinct_id: "u",
    properties,
  }));
  const { records } = take({ batch: events }, { rules });
  expect(records.map(({ properties }) => properties)).toEqual([{ email: 1 }, {}, { email: 1 }]);
  expect(rules.rules.map(countsOf)).toEqual([{ changed: 2 }, { dropped: 3 }, { changed: 2 }]);
  expect(records.map((record) => record["rules"])).toEqual([undefined, 5, 5]);
});

test.each(["enforce", "observe"] as const)("%s: counts one effect per event and rule", (mode) => {
  const rules = compiled([
    {
      ...ruleOf({}, { kind: "sample", share: 0.5 }, { kind: "remove", paths: ["email"] }),
      mode,
    },
    { ...ruleOf({ event: ["q"] }, { kind: "quarantine" }), mode },
  ]);
  const batch = Array.from({ length: 100 }, (_, index) => ({
    event: index < 50 ? "e" : "q",
    distinct_id: `u${index}`,
    properties: { email: 1 },
  }));
  const { records } = take({ batch }, { rules });
  const [sampled, quarantined] = rules.rules.map(countsOf);
  expect(sampled!["sampled_out"]! + sampled!["changed"]!).toBe(100);
  expect(Math.min(sampled!["sampled_out"]!, sampled!["changed"]!)).toBeGreaterThan(20);
  expect(Object.keys(sampled!)).toHaveLength(2);
  expect(Object.keys(quarantined!)).toEqual(["quarantined"]);
  const stored = 100 - sampled!["sampled_out"]! - quarantined!["quarantined"]!;
  expect(records).toHaveLength(mode === "observe" ? 100 : stored);
});

test.each(["enforce", "observe"] as const)("%s: counts a hash of what can be hashed", (mode) => {
  const rules = compiled([
    { ...ruleOf({}, { kind: "hash", paths: ["a"] }), mode },
    { ...ruleOf({}, { kind: "cut", bytes: new Map([["a", 4]]) }), mode: "enforce" },
    { ...ruleOf({}, { kind: "hash", paths: ["a"] }), mode },
  ]);
  const values = ["", "text", '"\\u00e9"', 1, { b: 1 }, [1], true, null];
  for (const a of values) take({ event: "e", distinct_id: "u", properties: { a } }, { rules });
  const hashable = values.length - 2;
  expect(rules.rules.map(({ counts }) => counts[RuleEffect.changed])).toEqual(
    mode === "enforce" ? [hashable, hashable, hashable] : [hashable, 1, hashable],
  );
});

const edited = ["a", "b", "$set.a", "$set_once.c", "$current_url", "distinct_id2"];
const setting = (match: Match, ...values: [string, Scalar][]) =>
  ruleOf(match, { kind: "set", values: new Map(values) });
const editing = [
  ...edited.map((path) => ruleOf({}, { kind: "remove", paths: [path, "both"] })),
  ruleOf({}, { kind: "hash", paths: ["c", "$set.d", "$set_once.a"] }),
  ruleOf({ event: ["f"] }, { kind: "hash", paths: ["c", "distinct_id"] }),
  setting({}, ["y", 'a "text"'], ["$screen_name", null]),
  setting({ event: ["f"] }, ["z", 1]),
];
const memberNames = [..."abcxyz", "both", "$current_url", "$screen_name", "$set", "distinct_id"];
const properties = fc.dictionary(
  fc.constantFrom(...memberNames),
  fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.dictionary(fc.constantFrom("a", "c", "d"), fc.nat(9))),
);
const sentEvents = fc
  .array(
    fc.record({
      $set: fc.option(properties, { nil: undefined }),
      properties,
      $set_once: fc.option(properties, { nil: undefined }),
      event: fc.constantFrom("e", "f"),
      distinct_id: fc.constant("u"),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((events) =>
    events.map(({ $set, ...rest }, at) => (at % 2 === 0 ? { $set, ...rest } : { ...rest, $set })),
  );

test("rules that the addon applies do the same as together with another rule", () => {
  // A plan with another action is applied in JavaScript.
  const other = ruleOf({}, { kind: "cut", bytes: new Map([["no-event-has-this", 1]]) });
  fc.assert(
    fc.property(sentEvents, fc.nat(2), (events, indent) => {
      const [only, mixed] = [compiled(editing), compiled([...editing, other])];
      const body = JSON.stringify({ batch: events }, null, indent);
      const [native, inTurn] = [only, mixed].map((rules) => take(body, { rules }));
      const withoutUuid = (lines: readonly string[]) =>
        lines.map((line) => line.replace(/"uuid":"[^"]*"/, ""));
      expect(withoutUuid(native!.lines)).toEqual(withoutUuid(inTurn!.lines));
      const countsOf = (rules: typeof only) =>
        rules.rules.slice(0, editing.length).map(({ counts }) => [...counts]);
      expect(countsOf(only)).toEqual(countsOf(mixed));
    }),
    { numRuns: 300 },
  );
});

test("two actions of a rule for the same member are applied in turn", () => {
  const rules = compiled([
    ruleOf(
      {},
      { kind: "set", values: new Map([["x", 1]]) },
      { kind: "hash", paths: ["x"] },
      { kind: "set", values: new Map([["y", 2]]) },
      { kind: "remove", paths: ["y"] },
    ),
  ]);
  for (const properties of [{}, { x: "sent", y: 1 }])
    expect(take({ event: "e", distinct_id: "u", properties }, { rules }).records).toMatchObject([
      { properties: { x: hmac("1") }, rules: 5 },
    ]);
});

test("rules that only remove members hold for any number of rules and events", () => {
  const names = Array.from({ length: 40 }, (_, at) => `secret ${at}`);
  const rules = compiled(names.map((name) => ruleOf({}, { kind: "remove", paths: [name] })));
  const few = compiled(
    names.slice(0, 32).map((name) => ruleOf({}, { kind: "remove", paths: [name] })),
  );
  const sent = Object.fromEntries([...names, "public"].map((name) => [name, 1]));
  const event = { event: "e", distinct_id: "u", properties: sent };
  for (const [of, left] of [
    [rules, { public: 1 }],
    [few, Object.fromEntries([...names.slice(32), "public"].map((name) => [name, 1]))],
  ] as const) {
    const { records } = take({ batch: Array.from({ length: 500 }, () => event) }, { rules: of });
    expect(records).toHaveLength(500);
    for (const record of records) expect(record["properties"]).toEqual(left);
  }
});

test("each event in quarantine has the name of its rule", () => {
  const rules = compiled(
    ["a", "b"].map((name) => ruleOf({ event: [name] }, { kind: "quarantine" })),
  );
  const batch = ["c", "b", "a", "b"].map((event) => ({ event, distinct_id: "u" }));
  const { causes } = take({ batch }, { rules });
  expect(causes).toEqual(["r1", "r0", "r1"].map((rule) => ({ reason: "rule", detail: "", rule })));
});

test("remove finds an object that only the event itself has", () => {
  const rules = compiled([ruleOf({}, { kind: "remove", paths: ["$set"] })]);
  const event = { event: "e", distinct_id: "u", $set: { a: 1 }, properties: { x: 1 } };
  const [record] = take(event, { rules }).records;
  expect(record).toMatchObject({ properties: { x: 1 }, rules: 5 });
  expect(record).not.toHaveProperty("$set");
});

test("rules set any number of members", () => {
  const values = Array.from({ length: 40 }, (_, at): [string, number] => [`source ${at}`, at]);
  for (const ofFirst of [1, setMembersMax, setMembersMax + 1]) {
    const parts = [values.slice(0, ofFirst), ...values.slice(ofFirst).map((one) => [one])];
    const rules = compiled(parts.map((part) => ruleOf({}, { kind: "set", values: new Map(part) })));
    const { records } = take({ event: "e", distinct_id: "u", properties: { x: 1 } }, { rules });
    expect(records[0]!["properties"]).toEqual({ ...Object.fromEntries(values), x: 1 });
  }
});

test("rules apply to all events of a large request whose events get further members", () => {
  const batch = Array.from({ length: 1_500 }, (_, index) => ({
    event: index % 10 === 9 ? "drop" : "e",
    distinct_id: "u",
    properties: { email: 1, index },
  }));
  const rules = compiled([
    ruleOf({ event: ["drop"] }, { kind: "drop" }),
    ruleOf({}, { kind: "remove", paths: ["email"] }),
  ]);
  const { records, filtered } = take({ batch }, { rules, additions: '"added":true' });
  expect(filtered).toBe(150);
  expect(records.map(({ properties }) => properties)).toEqual(
    batch
      .filter(({ event }) => event === "e")
      .map(({ properties: { index } }) => ({ added: true, index })),
  );
});

test("an event counts once for the first rule that removes a member", () => {
  const rules = compiled([
    ruleOf({}, { kind: "remove", paths: ["a", "b"] }),
    ruleOf({}, { kind: "remove", paths: ["b", "c"] }),
    ruleOf({}, { kind: "remove", paths: ["$groups", "c"] }),
  ]);
  const events = [
    { a: 1, b: 2, x: 3 },
    { c: 1, b: 2 },
    { $groups: { a: 1 } },
    { x: 1 },
    { a: 1, c: 2, x: 3, $groups: {} },
  ];
  const batch = events.map((properties) => ({ event: "e", distinct_id: "u", properties }));
  const { records } = take({ batch }, { rules });
  expect(records.map(({ properties }) => properties)).toEqual([
    { x: 3 },
    {},
    {},
    { x: 1 },
    { x: 3 },
  ]);
  expect(rules.rules.map(countsOf)).toEqual([{ changed: 3 }, { changed: 2 }, { changed: 2 }]);
});

test("cut reads only the beginning of a long text with escapes", () => {
  const rules = compiled([ruleOf({}, { kind: "cut", bytes: new Map([["a", 10]]) })]);
  const cutOf = (json: string): unknown => {
    const event = `{"event":"e","distinct_id":"u","properties":{"a":"${json}"}}`;
    return (take(event, { rules }).records[0]!["properties"] as { a: unknown }).a;
  };
  for (const [escaped, character] of [
    ["\\u00e9", "é"],
    ["\\ud83d\\ude00", "😀"],
    ["\\n", "\n"],
    ["é\\t", "é\t"],
  ] as const)
    for (let before = 0; before < 12; before++)
      for (const count of [1, 2, 5, 200]) {
        const whole = "x".repeat(before) + character.repeat(count);
        let expected = "";
        for (const one of whole) {
          if (Buffer.byteLength(expected + one) > 10) break;
          expected += one;
        }
        expect(cutOf("x".repeat(before) + escaped.repeat(count))).toBe(expected);
      }
});

test("keep_only counts and removes what earlier ones have left", () => {
  const keeps = (paths: string[], mode: RuleMode): Omit<Rule, "name"> => ({
    match: {},
    mode,
    actions: [{ kind: "keepOnly", paths }],
  });
  const rules = compiled([
    keeps(["a", "b", "c"], "enforce"),
    keeps(["a", "b", "c"], "enforce"),
    keeps(["a"], "observe"),
    ruleOf({}, { kind: "set", values: new Map([["d", 1]]) }),
    keeps(["a", "b"], "enforce"),
    keeps(["a", "b"], "observe"),
  ]);
  const { records } = take(
    { event: "e", distinct_id: "u", properties: { x: 1, a: 1, b: 1, c: 1, y: 1 } },
    { rules },
  );
  expect(records[0]!["properties"]).toEqual({ a: 1, b: 1 });
  const counts = rules.rules.map((rule) => rule.counts[RuleEffect.changed]);
  expect(counts).toEqual([1, 0, 1, 1, 1, 0]);
});

test("a text in place of an object does not keep what a rule removes inside", () => {
  const texts = `"$set":"{\\"email\\":\\"a@b\\"}","properties":{"$groups":"a@b","x":1}`;
  const replacedBy = (rules: CompiledRules): unknown => {
    const event = `{"event":"e","distinct_id":"u",${texts}}`;
    return take(event, { rules }).records[0]!["replaced"];
  };
  const replacedWith = (action: Action): unknown => replacedBy(compiled([ruleOf({}, action)]));
  expect(replacedWith({ kind: "remove", paths: ["email"] })).toMatchObject({
    $set: '{"email":"a@b"}',
    $groups: "a@b",
  });
  expect(replacedWith({ kind: "remove", paths: ["$set.email"] })).toEqual({ $groups: "a@b" });
  expect(replacedWith({ kind: "hash", paths: ["$set.email"] })).toEqual({ $groups: "a@b" });
  expect(replacedWith({ kind: "keepOnly", paths: ["x"] })).toBeUndefined();
  expect(replacedBy(compiled([], { cutFragment: true }))).toEqual({ $groups: "a@b" });
});

test("a long value that a rule has shortened can match, and a long one cannot", () => {
  const rules = compiled([
    ruleOf({}, { kind: "cut", bytes: new Map([["p", 3]]) }),
    ruleOf({ properties: new Map([["p", { kind: "equals", values: ["xxx"] }]]) }, { kind: "drop" }),
  ]);
  const event = { event: "e", distinct_id: "u", properties: { p: "x".repeat(5_000) } };
  expect(take(event, { rules }).records).toEqual([]);
});
