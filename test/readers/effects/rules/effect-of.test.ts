import { describe, expect, test } from "vitest";
import type { EventEffect, UsageClass } from "../../../../src/readers/effects/types.ts";
import { readLine, recordOf } from "../../../kit/effect-lines.ts";

type Fields = Readonly<Record<string, unknown>>;
type Does = Partial<
  Pick<EventEffect, "distinctId" | "person" | "link" | "group" | "memberOf" | "rejections">
>;

const nothing: Does = { person: undefined, link: undefined, group: undefined, memberOf: [] };
const noPerson: Does = { ...nothing, distinctId: undefined };
const somePerson: Does = { ...nothing, distinctId: "u" };
const set = { $set: { a: 1 } };
const wroteA = { once: [], set: [["a", "1"]], unset: [] } as const;
const identify = { event: "$identify", kind: "identify" };
const alias = { event: "$create_alias", kind: "alias" };
const merge = { event: "$merge_dangerously" };
const setUp = { event: "$groupidentify", kind: "group_identify" };

const rows: readonly (readonly [what: string, fields: Fields, usage: UsageClass, does: Does])[] = [
  ["an event creates a person", {}, "identified", somePerson],
  [
    "an event without a person profile creates no person",
    { person_profile: false },
    "anonymous",
    noPerson,
  ],
  [
    "an identify without a person profile has no effect",
    {
      ...identify,
      ...set,
      person_profile: false,
      properties: { $anon_distinct_id: "x", $groups: { t: "k" } },
    },
    "anonymous",
    noPerson,
  ],
  [
    "a cookieless visitor creates no person",
    { ...set, distinct_id: "$posthog_cookieless" },
    "anonymous",
    noPerson,
  ],
  ["$set sets properties", set, "identified", { ...somePerson, person: wroteA }],
  [
    "$set, $set_once and $unset are distinguished",
    { $set: { a: 1 }, $set_once: { b: "x" }, $unset: ["c", "d"] },
    "identified",
    { ...somePerson, person: { once: [["b", '"x"']], set: [["a", "1"]], unset: ["c", "d"] } },
  ],
  [
    "$set of the event takes precedence over $set in its properties",
    {
      $set: { a: 1 },
      $unset: ["c"],
      properties: { $set: { a: 2, b: 2 }, $set_once: { o: null }, $unset: { d: 0, c: 0 } },
    },
    "identified",
    {
      ...somePerson,
      person: {
        once: [["o", "null"]],
        set: [
          ["a", "1"],
          ["b", "2"],
        ],
        unset: ["c", "d"],
      },
    },
  ],
  [
    "an exception creates a person without properties",
    { ...set, event: "$exception" },
    "identified",
    somePerson,
  ],
  [
    "a heat map creates a person without properties",
    { ...set, event: "$$heatmap" },
    "identified",
    somePerson,
  ],
  [
    "an exception associates its person with groups",
    { event: "$exception", properties: { $groups: { t: "k" } } },
    "identified",
    { ...somePerson, memberOf: [{ type: "t", key: "k" }] },
  ],
  [
    "a $set event sets properties",
    { ...set, event: "$set", kind: "set" },
    "identified",
    { ...somePerson, person: wroteA },
  ],
  [
    "a survey is counted separately",
    { event: "survey sent", kind: "survey" },
    "survey",
    somePerson,
  ],
  [
    "an identify sets properties",
    { ...identify, ...set },
    "identify",
    { ...somePerson, person: wroteA },
  ],
  [
    "an identify links an anonymous id to the distinct id",
    { ...identify, ...set, properties: { $anon_distinct_id: "anon" } },
    "identify",
    { ...somePerson, person: wroteA, link: { kind: "identify", from: "anon", to: "u" } },
  ],
  [
    "an anonymous id of null is ignored",
    { ...identify, properties: { $anon_distinct_id: null } },
    "identify",
    somePerson,
  ],
  [
    "an empty anonymous id is ignored",
    { ...identify, properties: { $anon_distinct_id: "" } },
    "identify",
    somePerson,
  ],
  [
    "a blank anonymous id is a link from an empty id",
    { ...identify, properties: { $anon_distinct_id: " " } },
    "identify",
    { ...somePerson, link: { kind: "identify", from: "", to: "u" } },
  ],
  [
    "the id of a link becomes text like a distinct id",
    { ...identify, properties: { $anon_distinct_id: [1, { a: "é" }] } },
    "identify",
    { ...somePerson, link: { kind: "identify", from: '[1,{"a":"é"}]', to: "u" } },
  ],
  [
    "the id of a link is shortened like a distinct id",
    { ...alias, properties: { alias: "😀".repeat(401) } },
    "alias",
    {
      ...somePerson,
      link: { kind: "alias", from: "u", to: expect.stringMatching(/^(?:😀){356}~[\w-]{43}$/u) },
    },
  ],
  [
    "the id of a link is cleaned like a distinct id",
    { ...alias, properties: { alias: "a\0\ud800" } },
    "alias",
    { ...somePerson, link: { kind: "alias", from: "u", to: "a\ufffd\ufffd" } },
  ],
  [
    "an alias event links its distinct id to the alias",
    { ...alias, properties: { alias: 7 } },
    "alias",
    { ...somePerson, link: { kind: "alias", from: "u", to: "7" } },
  ],
  [
    "an alias event without an alias is rejected",
    { ...alias, ...set },
    "alias",
    {
      ...somePerson,
      person: wroteA,
      rejections: [{ reason: "invalid_field", detail: "it has no alias" }],
    },
  ],
  [
    "a merge event links like an alias event",
    { ...merge, properties: { alias: "x" } },
    "identified",
    { ...somePerson, link: { kind: "merge", from: "u", to: "x" } },
  ],
  [
    "an exception links nothing, whatever its kind",
    { ...alias, event: "$exception", properties: { alias: "x" } },
    "alias",
    somePerson,
  ],
  [
    "a group identify creates a group and no person",
    {
      ...setUp,
      ...set,
      properties: {
        $group_type: "co",
        $group_key: 7,
        $group_set: { n: [1, 2] },
        $groups: { co: "x" },
      },
    },
    "group_identify",
    {
      ...noPerson,
      group: { type: "co", key: "7", set: { once: [], set: [["n", "[1,2]"]], unset: [] } },
    },
  ],
  [
    "a group identify needs no person profile",
    {
      ...setUp,
      person_profile: false,
      properties: { $group_type: "co", $group_key: "k", $group_unset: ["n"] },
    },
    "group_identify",
    { ...noPerson, group: { type: "co", key: "k", set: { once: [], set: [], unset: ["n"] } } },
  ],
  [
    "a group without a key is rejected",
    { ...setUp, properties: { $group_type: "co", $group_key: " " } },
    "group_identify",
    {
      ...noPerson,
      rejections: [{ reason: "invalid_field", detail: "its $group_key is absent or blank" }],
    },
  ],
  [
    "$groups associates a person with groups",
    { properties: { $groups: { co: "k", team: 7, none: null, blank: " ", "": "x" } } },
    "identified",
    {
      ...somePerson,
      memberOf: [
        { type: "co", key: "k" },
        { type: "team", key: "7" },
      ],
    },
  ],
  [
    "a field that is not an object is rejected",
    { $set: [1], $set_once: { a: 1 }, $unset: "a", properties: { $groups: "co" } },
    "identified",
    {
      ...somePerson,
      person: { once: [["a", "1"]], set: [], unset: [] },
      rejections: [
        { reason: "invalid_field", detail: "$set is not an object" },
        { reason: "invalid_field", detail: "$unset is not a list of names" },
        { reason: "invalid_field", detail: "$groups is not an object" },
      ],
    },
  ],
];

describe("the effect of an event", () => {
  test.each(rows)("follows the documented table: %s", (_, fields, usage, does) => {
    const { effect, ...line } = readLine(recordOf(fields));
    expect(effect).toMatchObject({ rejections: [], ...does });
    expect(line).toMatchObject({
      usageClass: usage,
      hasPerson: does.distinctId !== undefined,
      distinctId: fields["distinct_id"] ?? "u",
    });
    const isNothing =
      effect.person === undefined &&
      effect.link === undefined &&
      effect.group === undefined &&
      effect.memberOf.length === 0 &&
      effect.rejections.length === 0;
    if (line.isPlain) expect(isNothing).toBe(true);
    else expect(line.usageClass !== "anonymous").toBe(true);
  });

  test.each([
    ['"\\u0024groups":{"\\u0063o":"k"}', { memberOf: [{ type: "co", key: "k" }] }],
    ['"$groups":{"a":1},"$groups":{"co":"k","co":"l"}', { memberOf: [{ type: "co", key: "l" }] }],
    ['"\\u0024set":{"a":1}', { person: wroteA }],
    ['"$set":{"a":2},"$set":{"a":1}', { person: wroteA }],
    [`"deep":${"[".repeat(2_000)}${"]".repeat(2_000)},"$set":{"a":1}`, { person: wroteA }],
    ['"\\u0000":1e400,"__proto__":{"$set":{}},"$set":{"a":1}', { person: wroteA }],
    [`"long":${"9".repeat(5_000)},"$set":{"a":1}`, { person: wroteA }],
  ])("is the same for every notation of the properties: row %#", (members, does) => {
    const line = recordOf().replace('"properties":{}', () => `"properties":{${members}}`);
    expect(readLine(line).effect).toMatchObject({ rejections: [], ...does });
  });

  test("is empty if the event has no person data", () => {
    for (const fields of [{}, { $set: {} }, { event: "$exception", ...set }, noPerson])
      expect(readLine(recordOf(fields)).isPlain).toBe(true);
    expect(readLine(recordOf(set)).isPlain).toBe(false);
  });

  test("names at most five groups", () => {
    const $groups = Object.fromEntries(Array.from({ length: 130 }, (_, n) => [`t${n}`, n]));
    const { effect } = readLine(recordOf({ properties: { $groups } }));
    expect(effect.memberOf).toHaveLength(5);
    const detail = "an event may name at most 5 groups (and 124 more of $groups)";
    expect(effect.rejections).toEqual([{ reason: "too_many_group_types", detail }]);
  });
});
