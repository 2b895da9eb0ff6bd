// The tables of reserved event names and timestamps in docs/reference/event-fields.md, row by row.

import { describe } from "vitest";
import { type Case, tryCases } from "./outcome-kit.ts";

const cases: Case[] = [
  [
    "that is an alias",
    { event: "$create_alias", distinct_id: "u", properties: { alias: "a" } },
    { stored: { kind: "alias" } },
  ],
  [
    "that is an alias without the other id",
    { event: "$create_alias", distinct_id: "u", properties: {} },
    { stored: { kind: "alias" }, warnings: ["missing_alias"] },
  ],
  [
    "that is an alias without properties",
    { event: "$create_alias", distinct_id: "u" },
    { stored: { kind: "alias" }, warnings: ["missing_alias"] },
  ],
  [
    "that is an alias with an empty id",
    { event: "$create_alias", distinct_id: "u", properties: { alias: "" } },
    { stored: { kind: "alias" }, warnings: ["missing_alias"] },
  ],
  [
    "that is an alias with a number as the id",
    { event: "$create_alias", distinct_id: "u", properties: { alias: 1 } },
    { stored: { kind: "alias", properties: { alias: 1 } } },
  ],
  ...(
    [
      ["$create_alias", { alias: "x".repeat(401) }],
      ["$identify", { $anon_distinct_id: "x".repeat(401), $set: {} }],
      ["$groupidentify", { $group_type: "t", $group_key: "k".repeat(401), $group_set: {} }],
      ["custom", { $groups: { company: "é".repeat(401) } }],
      ["custom", { $groups: { a: "b", ["t".repeat(401)]: 1 } }],
      ["custom", { $groups: { company: `}${"x".repeat(500)}` } }],
      ["custom", { x: { $groups: {} }, $groups: { company: "x".repeat(500) } }],
      ["custom", { x: "$groups", $groups: { a: {}, company: '\\"}'.repeat(300) } }],
    ] as const
  ).map(
    ([event, properties]): Case => [
      `that is named ${event}, with a long id`,
      { event, distinct_id: "u", properties },
      { stored: { properties }, warnings: ["id_shortened"] },
    ],
  ),
  ...(
    [
      ["$create_alias", { alias: "x".repeat(400) }],
      ["custom", { $groups: { company: "é".repeat(400), other: "x".repeat(400) } }],
    ] as const
  ).map(
    ([event, properties]): Case => [
      `that is named ${event}, with an id of 400 characters`,
      { event, distinct_id: "u", properties },
      { stored: { properties } },
    ],
  ),
  ...[true, -1.5, { id: 1 }, ["a"]].map((alias): Case => {
    const item = { event: "$create_alias", distinct_id: "u", properties: { alias } };
    return [
      `that is an alias with the id ${JSON.stringify(alias)}`,
      item,
      { stored: { properties: { alias } } },
    ];
  }),
  [
    "that is an alias with a blank id",
    { event: "$create_alias", distinct_id: "u", properties: { alias: " \t" } },
    { stored: { kind: "alias" }, warnings: ["missing_alias"] },
  ],
  [
    "that is a merge without the other id",
    { event: "$merge_dangerously", distinct_id: "u", properties: { alias: null } },
    { stored: { kind: "custom" }, warnings: ["missing_alias"] },
  ],
  [
    "that is a merge",
    { event: "$merge_dangerously", distinct_id: "u", properties: { alias: 7 } },
    { stored: { kind: "custom" } },
  ],
  [
    "that is a group identify whose type and key are numbers",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: { $group_type: 1, $group_key: 2, $group_set: {} },
    },
    { stored: { kind: "group_identify" } },
  ],
  [
    "that is a group identify without type and key, as RudderStack sends it",
    { event: "$groupidentify", distinct_id: "u", properties: {} },
    { stored: { kind: "group_identify" }, warnings: ["missing_group"] },
  ],
  [
    "that is an exception without $exception_list",
    { event: "$exception", distinct_id: "u", properties: { $exception_message: "m" } },
    { stored: { kind: "custom" }, warnings: ["missing_exception_list"] },
  ],
  [
    "that is an exception",
    { event: "$exception", distinct_id: "u", properties: { $exception_list: [{ type: "E" }] } },
    { stored: { kind: "custom" } },
  ],
  ...["generation", "span", "trace", "embedding", "metric", "feedback"].flatMap((name): Case[] => [
    [
      `that is an AI ${name} without a trace id`,
      { event: `$ai_${name}`, distinct_id: "u", properties: { $ai_model: "m" } },
      { stored: { kind: "custom" }, warnings: ["missing_trace_id"] },
    ],
    [
      `that is an AI ${name}`,
      { event: `$ai_${name}`, distinct_id: "u", properties: { $ai_trace_id: "t" } },
      { stored: { kind: "custom" } },
    ],
  ]),
  [
    "that is a group identify",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: { $group_type: "t", $group_key: "k", $group_set: { n: 1 } },
    },
    { stored: { kind: "group_identify" } },
  ],
  [
    "that is a group identify named $group_identify",
    {
      event: "$group_identify",
      distinct_id: "u",
      properties: { $group_type: "t", $group_key: "k", $group_set: {} },
    },
    { stored: { kind: "group_identify" } },
  ],
  [
    "that is a group identify without a key",
    { event: "$groupidentify", distinct_id: "u", properties: { $group_type: "t" } },
    { stored: { kind: "group_identify" }, warnings: ["missing_group"] },
  ],
  [
    "that is a group identify without a type",
    { event: "$group_identify", distinct_id: "u", properties: { $group_key: "k" } },
    { stored: { kind: "group_identify" }, warnings: ["missing_group"] },
  ],
  [
    "that is a group identify without $group_set",
    {
      event: "$groupidentify",
      distinct_id: "u",
      properties: { $group_type: "t", $group_key: "k" },
    },
    { stored: { kind: "group_identify" }, warnings: ["missing_group_set"] },
  ],
  [
    "that is a survey sent",
    { event: "survey sent", distinct_id: "u", properties: { $survey_id: "s" } },
    { stored: { kind: "survey" } },
  ],
  [
    "that is a survey shown without a survey id",
    { event: "survey shown", distinct_id: "u" },
    { stored: { kind: "survey" }, warnings: ["missing_survey_id"] },
  ],
  [
    "that is a survey dismissed without a survey id",
    { event: "survey dismissed", distinct_id: "u", properties: { $survey_id: null } },
    { stored: { kind: "survey" }, warnings: ["missing_survey_id"] },
  ],
  [
    "that is an identify with $set",
    { event: "$identify", distinct_id: "u", $set: { a: 1 } },
    { stored: { kind: "identify" } },
  ],
  [
    "that is an identify with $set in properties",
    { event: "$identify", distinct_id: "u", properties: { $set: {} } },
    { stored: { kind: "identify" } },
  ],
  [
    "that is an identify without $set",
    { event: "$identify", distinct_id: "u" },
    { stored: { kind: "identify" }, warnings: ["missing_set"] },
  ],
  [
    "that is a pageview",
    { event: "$pageview", distinct_id: "u", properties: { $current_url: "https://x" } },
    { stored: { kind: "pageview" } },
  ],
  [
    "that is a pageview without a URL",
    { event: "$pageview", distinct_id: "u" },
    { stored: { kind: "pageview" }, warnings: ["missing_current_url"] },
  ],
  [
    "that is a screen",
    { event: "$screen", distinct_id: "u", properties: { $screen_name: "home" } },
    { stored: { kind: "screen" } },
  ],
  [
    "that is a screen without a name",
    { event: "$screen", distinct_id: "u" },
    { stored: { kind: "screen" }, warnings: ["missing_screen_name"] },
  ],
  [
    "with a timestamp",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05.678Z" },
    { stored: { timestamp: "2026-01-02T03:04:05.678Z" } },
  ],
  [
    "with a timestamp that has a UTC offset",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05+01:00" },
    { stored: { timestamp: "2026-01-02T02:04:05.000Z" } },
  ],
  [
    "with a timestamp without a time zone",
    { event: "e", distinct_id: "u", timestamp: "2026-01-02T03:04:05" },
    { stored: { timestamp: "2026-01-02T03:04:05.000Z" } },
  ],
  [
    "with a timestamp that is not a time",
    { event: "e", distinct_id: "u", timestamp: "yesterday" },
    {
      stored: { timestamp: "received", replaced: { timestamp: "yesterday" } },
      warnings: ["invalid_timestamp"],
    },
  ],
  [
    "with a timestamp that is a number of seconds",
    { event: "e", distinct_id: "u", timestamp: 1767323045 },
    { stored: { timestamp: "2026-01-02T03:04:05.000Z" } },
  ],
  [
    "with a timestamp that is a zero time",
    { event: "e", distinct_id: "u", timestamp: "0001-01-01T00:00:00Z" },
    { stored: { timestamp: "received" }, warnings: ["zero_timestamp"] },
  ],
  ["without a timestamp", { event: "e", distinct_id: "u" }, { stored: { timestamp: "received" } }],
  [
    "with a timestamp in the far future",
    { event: "e", distinct_id: "u", timestamp: "2999-01-02T03:04:05Z" },
    {
      stored: { timestamp: "received", timestamp_sent: "2999-01-02T03:04:05.000Z" },
      warnings: ["timestamp_in_future"],
    },
  ],
  [
    "with an offset that is not a number",
    { event: "e", distinct_id: "u", offset: "12" },
    { stored: { timestamp: "received" }, warnings: ["invalid_offset"] },
  ],
];

describe("the gateway treats an event with a reserved name or a time as documented", () => {
  tryCases(cases);
});
