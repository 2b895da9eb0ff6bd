// The tables of docs/reference/event-fields.md, row by row, except the rules for names and times.

import { createHash } from "node:crypto";
import { describe } from "vitest";
import { type Case, tryCases } from "./outcome-kit.ts";

const longId = "é".repeat(250);

const cases: Case[] = [
  ["no event", { distinct_id: "u" }, { dropped: "no_event" }],
  ["event null", { event: null, distinct_id: "u" }, { dropped: "no_event" }],
  ["event a number", { event: 5, distinct_id: "u" }, { dropped: "no_event" }],
  ["event an object", { event: {}, distinct_id: "u" }, { dropped: "no_event" }],
  ["event empty", { event: "", distinct_id: "u" }, { dropped: "no_event" }],
  ["event white space", { event: " \t\u2003", distinct_id: "u" }, { dropped: "no_event" }],
  ["no distinct id", { event: "e" }, { dropped: "no_distinct_id" }],
  ["distinct id null", { event: "e", distinct_id: null }, { dropped: "no_distinct_id" }],
  ["distinct id empty", { event: "e", distinct_id: "" }, { dropped: "no_distinct_id" }],
  [
    "distinct id white space",
    { event: "e", distinct_id: " \u00a0" },
    { dropped: "no_distinct_id" },
  ],
  [
    "distinct id empty does not fall back",
    { event: "e", distinct_id: "", properties: { distinct_id: "p" } },
    { dropped: "no_distinct_id" },
  ],
  [
    "distinct id in properties",
    { event: "e", properties: { distinct_id: "p" } },
    { stored: { distinct_id: "p" } },
  ],
  [
    "distinct id null falls back",
    { event: "e", distinct_id: null, properties: { distinct_id: 7 } },
    { stored: { distinct_id: "7" } },
  ],
  [
    "top-level distinct id goes first",
    { event: "e", distinct_id: "top", properties: { distinct_id: "p" } },
    { stored: { distinct_id: "top" } },
  ],
  ["distinct id a number", { event: "e", distinct_id: 12.5 }, { stored: { distinct_id: "12.5" } }],
  ["distinct id false", { event: "e", distinct_id: false }, { stored: { distinct_id: "false" } }],
  [
    "distinct id an array",
    { event: "e", distinct_id: [1, "a"] },
    { stored: { distinct_id: '[1,"a"]' } },
  ],
  [
    "distinct id an object",
    { event: "e", distinct_id: { a: { b: null } } },
    { stored: { distinct_id: '{"a":{"b":null}}' } },
  ],
  [
    "distinct id of 250 characters",
    { event: "e", distinct_id: longId },
    { stored: { distinct_id: longId } },
  ],
  [
    "distinct id of 401 characters",
    { event: "e", distinct_id: "x".repeat(401) },
    {
      stored: {
        distinct_id: `${"x".repeat(356)}~${createHash("sha256").update("x".repeat(401)).digest("base64url")}`,
      },
      warnings: ["id_shortened"],
    },
  ],
  [
    "distinct id of 400 astral characters",
    { event: "e", distinct_id: "😀".repeat(400) },
    { stored: { distinct_id: "😀".repeat(400) } },
  ],
  [
    "NUL in the distinct id",
    { event: "e", distinct_id: "a\0b" },
    { stored: { distinct_id: "a\ufffdb" } },
  ],
  [
    "lone surrogate in the event",
    { event: "e\ud800", distinct_id: "u" },
    { stored: { event: "e\ufffd" } },
  ],
  [
    "lone surrogate in the distinct id",
    { event: "e", distinct_id: "\udc00u" },
    { stored: { distinct_id: "\ufffdu" } },
  ],
  [
    "lone surrogates in properties",
    { event: "e", distinct_id: "u", properties: { "k\ud800": ["v\udfff"] } },
    { stored: { properties: { "k\ufffd": ["v\ufffd"] } } },
  ],
  ["properties absent", { event: "e", distinct_id: "u" }, { stored: { properties: {} } }],
  [
    "properties null",
    { event: "e", distinct_id: "u", properties: null },
    { stored: { properties: {} } },
  ],
  [
    "properties a string",
    { event: "e", distinct_id: "u", properties: "p" },
    { error: "invalid_properties" },
  ],
  [
    "properties an array",
    { event: "e", distinct_id: "u", properties: ["a"] },
    { error: "invalid_properties" },
  ],
  [
    "properties an empty array",
    { event: "e", distinct_id: "u", properties: [] },
    { stored: { properties: {} } },
  ],
  ...[1, "x", "", true, false, ["a"], [[]]].flatMap((wrong): Case[] =>
    ["$set", "$set_once", "$group_set", "$groups"].map(
      (name): Case => [
        `properties.${name} ${JSON.stringify(wrong)}`,
        { event: "e", distinct_id: "u", properties: { a: 1, [name]: wrong, b: [{}, 2] } },
        {
          stored: { properties: { a: 1, b: [{}, 2] }, $set: undefined, $set_once: undefined },
          warnings: ["invalid_object"],
        },
      ],
    ),
  ),
  ...["$set", "$set_once", "$group_set", "$groups"].flatMap((name): Case[] => [
    [
      `properties.${name} an empty array`,
      { event: "$feature_flag_called", distinct_id: "u", properties: { [name]: [] } },
      { stored: { properties: { [name]: {} } } },
    ],
    [
      `properties.${name} wrong and alone`,
      { event: "e", distinct_id: "u", properties: { [name]: 5 } },
      { stored: { properties: {} }, warnings: ["invalid_object"] },
    ],
  ]),
  [
    "all wrong at once",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: {
        ...{ $set: 1, $set_once: "s", $unset: 2, $group_type: "t", $groups: [], $group_key: "k" },
        ...{ $group_set: [1], $group_unset: "u" },
      },
    },
    {
      stored: { properties: { $groups: {}, $group_type: "t", $group_key: "k" } },
      warnings: ["invalid_object", "invalid_unset"],
    },
  ],
  [
    "$set and $set_once that are empty arrays",
    { event: "$identify", distinct_id: "u", $set: [], $set_once: [] },
    { stored: { $set: undefined, $set_once: undefined } },
  ],
  [
    "$set not an object",
    { event: "e", distinct_id: "u", $set: 1 },
    { stored: { $set: undefined }, warnings: ["invalid_object"] },
  ],
  [
    "$set_once not an object",
    { event: "e", distinct_id: "u", $set_once: "x" },
    { stored: { $set_once: undefined }, warnings: ["invalid_object"] },
  ],
  [
    "objects that are null",
    {
      event: "e",
      distinct_id: "u",
      $set: null,
      $set_once: null,
      properties: { $set: null, $groups: null },
    },
    { stored: { properties: { $set: null, $groups: null } } },
  ],
  [
    "$set and $set_once",
    { event: "e", distinct_id: "u", $set: { a: 1 }, $set_once: { b: 2 } },
    { stored: { $set: { a: 1 }, $set_once: { b: 2 } } },
  ],
  [
    "$unset that is no list of names",
    { event: "e", distinct_id: "u", $unset: "a" },
    { stored: { properties: {}, $unset: undefined }, warnings: ["invalid_unset"] },
  ],
  [
    "person fields in properties",
    {
      event: "$set",
      distinct_id: "u",
      properties: { $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] },
    },
    { stored: { kind: "set", $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] } },
  ],
  [
    "uuid",
    { event: "e", distinct_id: "u", uuid: "0199b1c2-1111-7000-8000-00000000000a" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "uuid in upper case",
    { event: "e", distinct_id: "u", uuid: "0199B1C2-1111-7000-8000-00000000000A" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "uuid not a UUID",
    { event: "e", distinct_id: "u", uuid: "nope" },
    { stored: { uuid: "new" }, warnings: ["invalid_uuid"] },
  ],
  ["uuid absent", { event: "e", distinct_id: "u" }, { stored: { uuid: "new" } }],
  ["uuid empty", { event: "e", distinct_id: "u", uuid: "" }, { stored: { uuid: "new" } }],
  [
    "person profile off",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: false } },
    { stored: { person_profile: false } },
  ],
  [
    "person profile on",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: true } },
    { stored: { person_profile: true } },
  ],
  [
    "person profile not a boolean",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: "false" } },
    { stored: { person_profile: true }, warnings: ["invalid_person_profile"] },
  ],
  [
    "an api_key inside an item, unknown fields",
    { event: "e", distinct_id: "u", api_key: "other", library: "x" },
    { stored: { event: "e" } },
  ],
];

const batchOnlyCases: Case[] = [
  ["item null", null, { dropped: "not_an_object" }],
  ["item a number", 1, { dropped: "not_an_object" }],
  ["item a string", "event", { dropped: "not_an_object" }],
  ["item an array", [{ event: "e", distinct_id: "u" }], { dropped: "not_an_object" }],
  ["item empty", {}, { dropped: "no_event" }],
];

describe("documented outcome of an event", () => {
  tryCases(cases, batchOnlyCases);
});
