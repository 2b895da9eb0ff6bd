// The other tables of docs/reference/event-fields.md, row by row.

import { createHash } from "node:crypto";
import { describe } from "vitest";
import { type Case, tryCases } from "./outcome-kit.ts";

const longId = "é".repeat(250);

const cases: Case[] = [
  ["without a name", { distinct_id: "u" }, { dropped: "no_event" }],
  ["with a name that is null", { event: null, distinct_id: "u" }, { dropped: "no_event" }],
  ["with a name that is a number", { event: 5, distinct_id: "u" }, { dropped: "no_event" }],
  ["with a name that is an object", { event: {}, distinct_id: "u" }, { dropped: "no_event" }],
  ["with an empty name", { event: "", distinct_id: "u" }, { dropped: "no_event" }],
  ["with a name of white space", { event: " \t\u2003", distinct_id: "u" }, { dropped: "no_event" }],
  ["without a distinct id", { event: "e" }, { dropped: "no_distinct_id" }],
  [
    "with a distinct id that is null",
    { event: "e", distinct_id: null },
    { dropped: "no_distinct_id" },
  ],
  ["with an empty distinct id", { event: "e", distinct_id: "" }, { dropped: "no_distinct_id" }],
  [
    "with a distinct id of white space",
    { event: "e", distinct_id: " \u00a0" },
    { dropped: "no_distinct_id" },
  ],
  [
    "with an empty distinct id, and another one in properties",
    { event: "e", distinct_id: "", properties: { distinct_id: "p" } },
    { dropped: "no_distinct_id" },
  ],
  [
    "with a distinct id in properties only",
    { event: "e", properties: { distinct_id: "p" } },
    { stored: { distinct_id: "p" } },
  ],
  [
    "with a distinct id that is null, and another one in properties",
    { event: "e", distinct_id: null, properties: { distinct_id: 7 } },
    { stored: { distinct_id: "7" } },
  ],
  [
    "with different distinct ids at the top level and in properties",
    { event: "e", distinct_id: "top", properties: { distinct_id: "p" } },
    { stored: { distinct_id: "top" } },
  ],
  [
    "with a distinct id that is a number",
    { event: "e", distinct_id: 12.5 },
    { stored: { distinct_id: "12.5" } },
  ],
  [
    "with a distinct id that is false",
    { event: "e", distinct_id: false },
    { stored: { distinct_id: "false" } },
  ],
  [
    "with a distinct id that is an array",
    { event: "e", distinct_id: [1, "a"] },
    { stored: { distinct_id: '[1,"a"]' } },
  ],
  [
    "with a distinct id that is an object",
    { event: "e", distinct_id: { a: { b: null } } },
    { stored: { distinct_id: '{"a":{"b":null}}' } },
  ],
  [
    "with a distinct id of 250 characters",
    { event: "e", distinct_id: longId },
    { stored: { distinct_id: longId } },
  ],
  [
    "with a distinct id of 401 characters",
    { event: "e", distinct_id: "x".repeat(401) },
    {
      stored: {
        distinct_id: `${"x".repeat(356)}~${createHash("sha256").update("x".repeat(401)).digest("base64url")}`,
      },
      warnings: ["id_shortened"],
    },
  ],
  [
    "with a distinct id of 400 emoji",
    { event: "e", distinct_id: "😀".repeat(400) },
    { stored: { distinct_id: "😀".repeat(400) } },
  ],
  [
    "with U+0000 in its distinct id",
    { event: "e", distinct_id: "a\0b" },
    { stored: { distinct_id: "a\ufffdb" } },
  ],
  [
    "with a lone surrogate in its name",
    { event: "e\ud800", distinct_id: "u" },
    { stored: { event: "e\ufffd" } },
  ],
  [
    "with a lone surrogate in its distinct id",
    { event: "e", distinct_id: "\udc00u" },
    { stored: { distinct_id: "\ufffdu" } },
  ],
  [
    "with lone surrogates in its properties",
    { event: "e", distinct_id: "u", properties: { "k\ud800": ["v\udfff"] } },
    { stored: { properties: { "k\ufffd": ["v\ufffd"] } } },
  ],
  ["without properties", { event: "e", distinct_id: "u" }, { stored: { properties: {} } }],
  [
    "with properties that are null",
    { event: "e", distinct_id: "u", properties: null },
    { stored: { properties: {} } },
  ],
  [
    "with properties that are a string",
    { event: "e", distinct_id: "u", properties: "p" },
    { error: "invalid_properties" },
  ],
  [
    "with properties that are an array",
    { event: "e", distinct_id: "u", properties: ["a"] },
    { error: "invalid_properties" },
  ],
  [
    "with properties that are an empty array",
    { event: "e", distinct_id: "u", properties: [] },
    { stored: { properties: {} } },
  ],
  ...[1, "x", "", true, false, ["a"], [[]]].flatMap((wrong): Case[] =>
    ["$set", "$set_once", "$group_set", "$groups"].map(
      (name): Case => [
        `with ${name} ${JSON.stringify(wrong)} in its properties`,
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
      `with an empty array as ${name} in its properties`,
      { event: "$feature_flag_called", distinct_id: "u", properties: { [name]: [] } },
      { stored: { properties: { [name]: {} } } },
    ],
    [
      `with only an invalid ${name} in its properties`,
      { event: "e", distinct_id: "u", properties: { [name]: 5 } },
      { stored: { properties: {} }, warnings: ["invalid_object"] },
    ],
  ]),
  [
    "with several invalid fields",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: {
        $set: 1,
        $set_once: "s",
        $unset: 2,
        $group_type: "t",
        $groups: [],
        $group_key: "k",
        $group_set: [1],
        $group_unset: "u",
      },
    },
    {
      stored: { properties: { $groups: {}, $group_type: "t", $group_key: "k" } },
      warnings: ["invalid_object", "invalid_unset"],
    },
  ],
  [
    "with $set and $set_once that are empty arrays",
    { event: "$identify", distinct_id: "u", $set: [], $set_once: [] },
    { stored: { $set: undefined, $set_once: undefined } },
  ],
  [
    "with a $set that is a number",
    { event: "e", distinct_id: "u", $set: 1 },
    { stored: { $set: undefined }, warnings: ["invalid_object"] },
  ],
  [
    "with a $set_once that is a string",
    { event: "e", distinct_id: "u", $set_once: "x" },
    { stored: { $set_once: undefined }, warnings: ["invalid_object"] },
  ],
  [
    "with $set, $set_once and $groups that are null",
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
    "with $set and $set_once",
    { event: "e", distinct_id: "u", $set: { a: 1 }, $set_once: { b: 2 } },
    { stored: { $set: { a: 1 }, $set_once: { b: 2 } } },
  ],
  [
    "with an $unset that is not a list of names",
    { event: "e", distinct_id: "u", $unset: "a" },
    { stored: { properties: {}, $unset: undefined }, warnings: ["invalid_unset"] },
  ],
  [
    "with person fields in its properties",
    {
      event: "$set",
      distinct_id: "u",
      properties: { $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] },
    },
    { stored: { kind: "set", $set: { a: 1 }, $set_once: { b: 2 }, $unset: ["c"] } },
  ],
  [
    "with a uuid",
    { event: "e", distinct_id: "u", uuid: "0199b1c2-1111-7000-8000-00000000000a" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "with a uuid in upper case",
    { event: "e", distinct_id: "u", uuid: "0199B1C2-1111-7000-8000-00000000000A" },
    { stored: { uuid: "0199b1c2-1111-7000-8000-00000000000a" } },
  ],
  [
    "with an invalid uuid",
    { event: "e", distinct_id: "u", uuid: "nope" },
    { stored: { uuid: "new" }, warnings: ["invalid_uuid"] },
  ],
  ["without a uuid", { event: "e", distinct_id: "u" }, { stored: { uuid: "new" } }],
  ["with an empty uuid", { event: "e", distinct_id: "u", uuid: "" }, { stored: { uuid: "new" } }],
  [
    "with a person profile that is off",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: false } },
    { stored: { person_profile: false } },
  ],
  [
    "with a person profile that is on",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: true } },
    { stored: { person_profile: true } },
  ],
  [
    "with a person profile that is not a boolean",
    { event: "e", distinct_id: "u", properties: { $process_person_profile: "false" } },
    { stored: { person_profile: true }, warnings: ["invalid_person_profile"] },
  ],
  [
    "with an api_key of its own and unknown fields",
    { event: "e", distinct_id: "u", api_key: "other", library: "x" },
    { stored: { event: "e" } },
  ],
];

const batchOnlyCases: Case[] = [
  ["that is null", null, { dropped: "not_an_object" }],
  ["that is a number", 1, { dropped: "not_an_object" }],
  ["that is a string", "event", { dropped: "not_an_object" }],
  ["that is an array", [{ event: "e", distinct_id: "u" }], { dropped: "not_an_object" }],
  ["that is empty", {}, { dropped: "no_event" }],
];

describe("the gateway treats an event as documented", () => {
  tryCases(cases, batchOnlyCases);
});
