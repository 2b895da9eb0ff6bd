import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { dayMs } from "../../src/platform/base/day.ts";
import { sampleHash } from "../../src/records/sample-hash.ts";
import { isKnownBot } from "../../src/rules/bots.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { SchemaResult } from "../../src/rules/event-schema.ts";
import { rootDomainOf } from "../../src/rules/root-domain.ts";
import {
  type Action,
  type EventSchema,
  type Match,
  noPrivacy,
  type PropertyMatch,
  type Rule,
  type RulesFile,
  type Scalar,
  type SchemaMode,
} from "../../src/rules/rules-file.ts";
import { canonical } from "../kit/canonical-json.ts";
import { codePoint } from "../kit/code-points.ts";
import { receivedAtMs, take } from "../kit/items.ts";
import { clientAddress, hashFor, saltOf } from "./cookieless-kit.ts";
import { applyModel, type Json, type ModelEvent, membersOf, plain } from "./rules-model.ts";
import { oracleOf, type Schema, type Stamp } from "./schema-kit.ts";

const secret = createHash("sha256").update("secret").digest();
const agent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

const propertyNames = [
  "email",
  "plan",
  "ü mail",
  "a\\b",
  '"',
  "",
  "__proto__",
  "constructor",
  "$lib",
  "total",
  "$current_url",
  "$referrer",
  "$raw_user_agent",
  "address",
  "$groups",
  "name",
  "address.city",
  "$set.email",
  "$cookieless_mode",
  "$ip",
];
const escaped = (name: string) => name.replaceAll(/[\\.]/g, "\\$&");
const paths = [
  ...propertyNames.filter((name) => name !== "" && name !== "$groups").map(escaped),
  "$set.email",
  "$set.plan",
  "$set_once.email",
  "$set.__proto__",
  "$set_once.x\\.y",
];
const scalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constantFrom<Scalar>("free", "pro", "", "ä€😀 long text", null, true, false, 0, 1, -2.5, 1e21),
  fc.string({ maxLength: 12, unit: codePoint }).map((text) => text.replaceAll("\0", "")),
);
const text = fc.constantFrom(
  "free",
  "a@b.c",
  "x".repeat(40),
  "é".repeat(20),
  'q"\\\n\u0001',
  "web",
  "1.2.3",
  agent,
);
const url = fc.constantFrom(
  "https://a.b/c?email=x&y=1#frag?token=2",
  "/p?em%61il=1",
  "/?",
  "#email",
  "?a=1&a=2&token",
);
const value: fc.Arbitrary<Json> = fc.oneof(
  scalar,
  text,
  url,
  fc.constantFrom<Json>([], {}, [1, { email: "in an array" }], { city: "Ulm", email: "deep" }),
);
const members = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...propertyNames), value), {
    selector: ([name]) => name,
    maxLength: 8,
  })
  .map((entries) =>
    entries.map(([name, one]): [string, Json] => (name === "$groups" ? [name, {}] : [name, one])),
  );
/** The members that a cookieless event needs. */
const cookielessMembers: readonly (readonly [string, Json])[] = Object.entries({
  $cookieless_mode: true,
  $raw_user_agent: agent,
  $host: "shop.example.com",
});
const personFields = fc.uniqueArray(fc.tuple(fc.constantFrom("email", "plan", "x", "x.y"), value), {
  selector: ([name]) => name,
  maxLength: 3,
});
const namesToRemove = fc.subarray(["email", "plan", "x", "ü"]);
const eventNames = ["scroll", "ping", "ping pong", "order", "sign_up", "$pageview", "ü"];

interface SentEvent {
  readonly fields: readonly (readonly [string, Json])[];
}

const objectOf = (entries: readonly (readonly [string, Json])[]): Json =>
  Object.fromEntries(entries) as Json;

const event: fc.Arbitrary<SentEvent> = fc
  .record({
    name: fc.constantFrom(...eventNames),
    id: fc.oneof(
      fc.constantFrom<Json>("u1", "u2", 17, "ü"),
      fc.string({ minLength: 1 }).filter((id) => id.trim() !== ""),
    ),
    properties: fc.option(members),
    inner: fc.option(personFields),
    innerOnce: fc.option(personFields),
    set: fc.option(personFields),
    setOnce: fc.option(personFields),
    unset: fc.option(namesToRemove),
    innerUnset: fc.option(namesToRemove),
    hasOwnId: fc.boolean(),
    isCookieless: fc.boolean(),
  })
  .map(({ name, id, properties, hasOwnId, isCookieless, ...person }) => {
    const { inner, innerOnce, set, setOnce, unset, innerUnset } = person;
    const added = isCookieless && properties !== null ? cookielessMembers : [];
    const others = (properties ?? []).filter(([name]) => !added.some(([other]) => other === name));
    const nested = [...others, ...added].map(([name, one]): [string, Json] => [name, one]);
    if (inner !== null) nested.push(["$set", objectOf(inner)]);
    if (innerOnce !== null) nested.unshift(["$set_once", objectOf(innerOnce)]);
    if (innerUnset !== null) nested.push(["$unset", innerUnset]);
    if (!hasOwnId) nested.push(["distinct_id", id]);
    const fields: [string, Json][] = [["event", name]];
    if (hasOwnId) fields.push(["distinct_id", id]);
    if (set !== null) fields.unshift(["$set", objectOf(set)]);
    if (properties !== null || nested.length > 0) fields.push(["properties", objectOf(nested)]);
    if (setOnce !== null) fields.push(["$set_once", objectOf(setOnce)]);
    if (unset !== null) fields.unshift(["$unset", unset]);
    return { fields };
  });

const sentEvents = fc.array(fc.tuple(event, fc.nat({ max: 7 })), { minLength: 1, maxLength: 16 });

const path = fc.constantFrom(...paths);
const someOf = <One>(one: fc.Arbitrary<One>) => fc.array(one, { minLength: 1, maxLength: 4 });
const propertyMatch: fc.Arbitrary<PropertyMatch> = fc.oneof(
  fc.constantFrom<PropertyMatch>({ kind: "exists" }, { kind: "absent" }),
  someOf(scalar).map((values): PropertyMatch => ({ kind: "equals", values })),
  someOf(fc.constantFrom("*@*", "f*", "*", "free", "*#*=*", "x*x", "*é", 'q"*')).map(
    (patterns): PropertyMatch => ({ kind: "like", patterns }),
  ),
);
const eventMatches = someOf(fc.constantFrom(...eventNames, "ping*", "*", "*o*", "renamed"));
const eventMatch: fc.Arbitrary<Match> = fc.record({ event: eventMatches }, { requiredKeys: [] });
const match: fc.Arbitrary<Match> = fc.record(
  {
    event: eventMatches,
    sdk: someOf(fc.constantFrom("posthog-js", "web", "w*", "free")),
    sdkVersion: someOf(fc.constantFrom("1.*", "2")),
    lane: fc.constantFrom("live" as const, "historical" as const),
    bot: fc.boolean(),
    properties: fc
      .dictionary(fc.oneof(path, fc.constant("$unset")), propertyMatch, { maxKeys: 2 })
      .map((tests) => new Map(Object.entries(tests))),
  },
  { requiredKeys: [] },
);
const change: fc.Arbitrary<Action> = fc.oneof(
  someOf(fc.oneof(path, fc.constantFrom("$set", "$set_once", "$unset", "address"))).map(
    (all): Action => ({ kind: "remove", paths: all }),
  ),
  someOf(path).map((all): Action => ({ kind: "keepOnly", paths: all })),
  // The hash of an object is that of its JSON as sent, even if an earlier rule changed it.
  someOf(path.filter((one) => one !== "address")).map(
    (all): Action => ({ kind: "hash", paths: all }),
  ),
  fc
    .array(fc.tuple(path, scalar), { minLength: 1, maxLength: 3 })
    .map((values): Action => ({ kind: "set", values: new Map(values) })),
  fc
    .array(fc.tuple(path, fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 3 })
    .map((bytes): Action => ({ kind: "cut", bytes: new Map(bytes) })),
  fc.constantFrom<Action>({ kind: "rename", event: "renamed" }, { kind: "rename", event: "ping" }),
);
const ending = fc.oneof(
  fc.constantFrom<Action>({ kind: "drop" }, { kind: "quarantine" }),
  fc.constantFrom(0, 0.3, 0.5, 1).map((share): Action => ({ kind: "sample", share })),
);
const rule: fc.Arbitrary<Omit<Rule, "name">> = fc.record({
  mode: fc.constantFrom("enforce", "enforce", "enforce", "observe"),
  match: fc.oneof(match, eventMatch),
  actions: fc.oneof({ weight: 4, arbitrary: someOf(change) }, fc.tuple(ending)),
});
const valueSchema = fc.constantFrom<Schema>(
  { type: ["string", "null"], maxLength: 8 },
  { type: "number", minimum: 0 },
  { enum: ["free", "pro", null] },
  { pattern: "^[a-z0-9]+$" },
  { type: "object", required: ["city"] },
);
const schemaIn = (modes: readonly SchemaMode[]): fc.Arbitrary<EventSchema> =>
  fc.record({
    event: fc.constantFrom(...eventNames, "renamed"),
    version: fc.integer({ min: 1, max: 9 }),
    mode: fc.constantFrom(...modes),
    properties: fc.record({
      properties: fc.dictionary(fc.constantFrom("email", "plan", "total"), valueSchema, {
        maxKeys: 2,
      }),
      required: fc.constantFrom([], [], ["email"]),
      additionalProperties: fc.constantFrom(true, true, false, { type: "string" }),
    }),
  });
const rulesAtMost = (maxLength: number): fc.Arbitrary<Rule[]> =>
  fc
    .array(rule, { maxLength })
    .map((rules) => rules.map((one, index) => ({ name: `r${index}`, ...one })));
const privacy = fc.record({
  ip: fc.constant("keep" as const),
  cutQuery: fc.constantFrom<string[]>([], [], ["email", "token"], ["*"]),
  cutFragment: fc.boolean(),
  cookieless: fc.boolean(),
});
/** Most of these rules are applied by the addon. Some change a path in different ways. */
const editing: fc.Arbitrary<Action> = fc.oneof(
  someOf(path).map((paths): Action => ({ kind: "remove", paths })),
  fc.constantFrom<Action>({ kind: "remove", paths: ["$set"] }),
  someOf(path.filter((one) => one !== "address")).map((paths): Action => ({ kind: "hash", paths })),
  fc
    .array(fc.tuple(path, scalar), { minLength: 1, maxLength: 3 })
    .map((values): Action => ({ kind: "set", values: new Map(values) })),
);
const nativeRules = fc
  .array(
    fc.record({
      mode: fc.constant("enforce" as const),
      match: eventMatch,
      actions: fc.oneof(
        { weight: 3, arbitrary: fc.array(editing, { minLength: 1, maxLength: 2 }) },
        fc.constantFrom(0.3, 0.5, 1).map((share): Action[] => [{ kind: "sample", share }]),
      ),
    }),
    { maxLength: 4 },
  )
  .map((rules) => rules.map((one, index) => ({ name: `r${index}`, ...one })));
const fileWith = (...modes: readonly SchemaMode[]): fc.Arbitrary<RulesFile> => {
  const schemas = fc.uniqueArray(schemaIn(modes), {
    selector: ({ event }) => event,
    maxLength: 5,
  });
  return fc.oneof(
    fc.record({ privacy, rules: rulesAtMost(6), schemas }),
    // The addon judges most events of these files.
    fc.record({ privacy: fc.constant(noPrivacy), rules: rulesAtMost(1), schemas }),
    fc.record({
      privacy: fc.constantFrom(noPrivacy, noPrivacy, { ...noPrivacy, cookieless: true }),
      rules: nativeRules,
      schemas: fc.oneof(fc.constant([]), schemas),
    }),
  );
};

/** Writes JSON, with escapes in names and white space where the seed asks for them. */
function spelled(value: Json, spelling: number): string {
  const space = (spelling & 1) === 0 ? "" : " ";
  if (Array.isArray(value)) return `[${value.map((one) => spelled(one, 0)).join(`,${space}`)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value as { [name: string]: Json }).map(([name, one]) => {
    const escapes = (spelling & 2) !== 0;
    const written = escapes
      ? `"${[...name].map((c) => (c.length > 1 ? c : `\\u${hex(c)}`)).join("")}"`
      : JSON.stringify(name);
    const repeated = (spelling & 4) !== 0 && name === "email" ? `${written}:"first@x.y",` : "";
    return `${repeated}${written}${space}:${space}${spelled(one, spelling)}`;
  });
  return `{${space}${entries.join(`${space},${space}`)}${space}}`;
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, "0");
}

function modelOf({ fields }: SentEvent): ModelEvent {
  const sent = JSON.parse(JSON.stringify(objectOf(fields))) as { [name: string]: Json };
  return {
    name: sent["event"] as string,
    distinctId: sent["distinct_id"],
    properties: membersOf(sent["properties"]),
    set: membersOf(sent["$set"]),
    setOnce: membersOf(sent["$set_once"]),
    unset: sent["$unset"],
  };
}

function merged(event: ModelEvent, name: "$set" | "$set_once"): unknown {
  const top = name === "$set" ? event.set : event.setOnce;
  const inner = event.properties?.get(name);
  return plain(new Map([...(inner instanceof Map ? inner : []), ...(top ?? [])]));
}

/** Returns the names of all lists, in the order of the alphabet. */
function namesIn(...lists: unknown[]): string[] {
  return [...new Set(lists.flatMap((list) => (Array.isArray(list) ? list : [])))].sort();
}

const sampleOf = (id: string): number => {
  const bytes = Buffer.from(id);
  return sampleHash(bytes, 0, bytes.length) / 2 ** 32;
};

const today = Math.floor(receivedAtMs / dayMs);
const visitorHashOf = (address: string, host: string, userAgent: string): string =>
  hashFor(today, `p-${address}-${rootDomainOf(host)}-${userAgent}-0-`);

/** Replaces the session id, which another test checks. */
function withoutSession(properties: object): object {
  return "$session_id" in properties ? { ...properties, $session_id: "a session id" } : properties;
}

/** Returns a function that judges an event after the rules by the schema of its name. */
function judgeOf({ schemas }: RulesFile) {
  const oracles = schemas.map((one) => ({ ...one, passes: oracleOf(one.properties as Schema) }));
  return ({ name, properties }: ModelEvent) => {
    const schema = oracles.find(({ event }) => event === name);
    if (schema === undefined) return undefined;
    const ok = schema.passes(plain(properties ?? new Map()));
    return {
      name,
      ok,
      stamp: schema.mode === "stamp" ? [schema.version, ok] : undefined,
    };
  };
}

test("the intake applies rules like a model over parsed events", () => {
  const seen = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(
      // Schemas in these modes do not change what is stored.
      fileWith("observe", "stamp", "stamp"),
      sentEvents,
      // All events are also sent several times, so that the members of many rows are found at once.
      fc.constantFrom(1, 1, 1, 20),
      fc.record({ historical: fc.boolean(), isBot: fc.boolean() }),
      (rulesFile, different, copies, { historical, isBot }) => {
        const events = Array.from({ length: copies }, () => different).flat();
        const judge = judgeOf(rulesFile);
        const cookieless = { projectId: "p", rootDomainOf };
        const rules = compileRules(rulesFile, { version: 7, secret, saltOf, cookieless });
        // The hash of an object is that of its JSON as sent, so its white space counts.
        const hashes = rulesFile.rules.some(({ actions }) =>
          actions.some(({ kind }) => kind === "hash"),
        );
        const spellings = hashes ? 6 : 7;
        const body = `{"batch":[${events
          .map(([{ fields }, spelling]) => spelled(objectOf(fields), spelling & spellings))
          .join()}]}`;
        const expected = events.flatMap(([one]) => {
          const model = modelOf(one);
          const before = canonical(plainEvent(model));
          const lane = historical ? ("historical" as const) : ("live" as const);
          const facts = { lane, isBot, secret, isKnownBot, sampleOf };
          const request = { ...facts, address: clientAddress, visitorHashOf };
          const outcome = applyModel(rulesFile, model, request);
          const after = canonical(plainEvent(model));
          return outcome === "stored"
            ? [{ after, isChanged: before !== after, judgement: judge(model) }]
            : [];
        });
        const circumstances = { historical, isBot, rules, clientAddress };
        // The second time, the rules know the names of the events.
        for (const taken of [take(body, circumstances), take(body, circumstances)]) {
          expect(taken.errors).toEqual([]);
          const stored = taken.records.map((record) => ({
            after: canonical({
              name: record["event"],
              properties: withoutSession(record["properties"] as object),
              set: record["$set"] ?? {},
              setOnce: record["$set_once"] ?? {},
              unset: namesIn(record["$unset"]),
            }),
            rules: record["rules"],
            stamp: record["schema"] as Stamp | undefined,
          }));
          expect(stored.map(({ after }) => after)).toEqual(expected.map(({ after }) => after));
          for (const [index, { isChanged, judgement }] of expected.entries()) {
            const { rules: version, stamp } = stored[index]!;
            if (isChanged) expect(version).toBe(7);
            expect(stamp && [stamp.version, stamp.ok]).toEqual(judgement?.stamp);
            if (judgement !== undefined) seen[judgement.ok ? "valid" : "invalid"]++;
          }
          expect(taken.filtered + taken.dropped + taken.records.length).toBe(events.length);
        }
        for (const { event: name, counts } of rules.schemas) {
          const ofName = expected.filter(({ judgement }) => judgement?.name === name);
          const valid = ofName.filter(({ judgement }) => judgement?.ok === true).length;
          expect(counts[SchemaResult.valid]).toBe(2 * valid);
          expect(counts[SchemaResult.invalid]).toBe(2 * (ofName.length - valid));
        }
      },
    ),
    { numRuns: 500 },
  );
  expect(Math.min(seen.valid, seen.invalid), JSON.stringify(seen)).toBeGreaterThan(100);
}, 120_000);

test("the events of a batch have the same results as alone", () => {
  fc.assert(
    fc.property(
      fileWith("observe", "stamp", "quarantine"),
      sentEvents,
      fc.constantFrom(undefined, undefined, '"added":1'),
      (rulesFile, events, additions) => {
        const cookieless = { projectId: "p", rootDomainOf };
        const compile = () => compileRules(rulesFile, { version: 7, secret, saltOf, cookieless });
        const texts = events.map(([{ fields }, spelling]) => spelled(objectOf(fields), spelling));
        const resultsIn = (bodies: readonly string[]) => {
          const rules = compile();
          // The second time, the rules know the names of the events.
          const taken = [...bodies, ...bodies].map((body) =>
            take(body, { rules, clientAddress, ...(additions === undefined ? {} : { additions }) }),
          );
          return {
            records: taken.flatMap(({ records }) => records.map(({ uuid: _, ...rest }) => rest)),
            details: taken.flatMap(({ details }) => details).sort(),
            errors: taken.flatMap(({ errors }) => errors),
            causes: taken.flatMap(({ causes }) => causes),
            quarantined: taken.flatMap(({ quarantined }) => quarantined),
            filtered: taken.reduce((sum, { filtered }) => sum + filtered, 0),
            ofRules: rules.rules.map(({ counts }) => [...counts]),
            ofSchemas: rules.schemas.map(({ counts }) => [...counts]),
          };
        };
        expect(resultsIn([`{"batch":[${texts.join()}]}`])).toEqual(
          resultsIn(texts.map((text) => `{"batch":[${text}]}`)),
        );
      },
    ),
    { numRuns: 500 },
  );
}, 120_000);

function plainEvent(event: ModelEvent): unknown {
  return {
    name: event.name,
    properties: plain(event.properties ?? new Map()),
    set: merged(event, "$set"),
    setOnce: merged(event, "$set_once"),
    unset: namesIn(event.unset, event.properties?.get("$unset")),
  };
}
