// docs/reference/event-fields.md: what one event may have, and what becomes of it where it is
// otherwise. The numbers are the constants that the code goes by, the defaults those of the
// settings, and the codes those of the tables, so none of them can be another than in force.

import { slowItemBytesMax } from "../../src/gateway/intake/plain-form.ts";
import { itemNotesMax } from "../../src/gateway/intake/tally.ts";
import { additionBytesMax } from "../../src/gateway/intake/v1/additions.ts";
import { keyCharsMax } from "../../src/gateway/projects/registry/bucket.ts";
import type { ErrorCode } from "../../src/platform/base/errors.ts";
import type { DropCode, WarningCode } from "../../src/platform/base/warnings.ts";
import { messageBytesMax } from "../../src/platform/embedded/nats-config.ts";
import { headerBytesMax } from "../../src/platform/nats/limits.ts";
import { type SettingName, settings, variableOf } from "../../src/platform/settings/config.ts";
import { distinctIdCharactersMax, idBeginningCharacters } from "../../src/records/distinct-id.ts";
import { aheadMsMax } from "../../src/records/event-time.ts";
import { type FieldType, type RecordField, recordFields } from "../../src/records/fields.ts";
import { mergedBytesMax, namesBytesMax } from "../../src/records/person-fields.ts";
import { recordOverheadBytesMax } from "../../src/records/record.ts";
import { depthMax, numberDigitsMax } from "../../src/records/table.ts";
import { eventNameCharactersMax } from "../../src/records/text-length.ts";
import { tokenBytesRead } from "../../src/records/token-beginning.ts";
import { uuidBytes } from "../../src/records/uuid.ts";
import { replacedBytesMax, replacedCharactersMax } from "../../src/records/verdict.ts";
import { bytesText, generatedFrom } from "./words.ts";

type Row = readonly string[];

const introduction = `# What one event may have

${generatedFrom("scripts/docs/event-page.ts")}

[The interface](events.md) says how events are sent, one by one or in batches. This page has the event itself: its fields, which of them it must have, their limits, and what becomes of it where it is otherwise. One bad event costs itself and none of its neighbours. What is otherwise comes to one of four outcomes. The answer names the event in \`warnings\` or \`errors\` for the first three, and nowhere for the fourth:

- **left out**: not stored, counted as \`dropped\`, named in \`warnings\`;
- **error**: not stored, counted as \`dropped\`, named in \`errors\` (where no event of the request is any better, the request is answered with it, as a 4xx);
- **warning**: stored, counted as \`accepted\`, named in \`warnings\`;
- **normalised**: stored otherwise than it came, counted as \`accepted\`, named nowhere.

An answer names ${itemNotesMax} errors and ${itemNotesMax} warnings at most, and says how many there are. In [the newer protocol](newer-protocol.md) each event has its own result: \`drop\` for the first two, \`warning\` or \`ok\` for the others.

The least that is stored is \`{"event":"signed up","distinct_id":"user-1"}\`, with the key beside it. \`null\` counts as absent in all fields of this page.`;

export function eventPage(): string {
  return `${[
    introduction,
    `## Fields\n\n${table(["Field", "Must it be there?", "What it is, at most", "Where it is otherwise"], fields())}`,
    "Every other field at the top level is ignored: what is to be stored stands in `properties`. In the newer protocol three more count, and go into `properties`: [`session_id`, `window_id` and `options`](newer-protocol.md#the-request).",
    `## Properties that mean something\n\nAll others are stored as they are, whatever their names and types.\n\n${table(["In `properties`", "What it is", "Where it is otherwise"], properties())}`,
    `## Events whose name says what they must have\n\n${table(["Event", "What it has in `properties`", "Where it has not"], specialEvents())}`,
    `## The event as a whole\n\n${table(["What", "At most", "Where it is more, or otherwise"], whole())}`,
    `## The stored record\n\nEach event is stored as one line of JSON with these fields, in this order. A reader gets the line as it is stored ([an example](../guides/reading.md#a-record)). PostgreSQL, ClickHouse and Parquet files have the columns named here.\n\n${table(["Field", "Type", "Read from", "At most", "Column", "What it says"], storedFields())}`,
    `## In the newer protocol\n\nAll of the above, but for this:\n\n${table(["What comes", "What becomes of it"], newerProtocol())}`,
    `## Times\n\n[Time](events.md#time) has the forms of a time, and how a client's wrong clock is corrected. What is limited is the time after that correction.\n\n${table(["What", "At most", "Where it is otherwise"], times())}`,
  ].join("\n\n")}\n`;
}

/** A link to what docs/reference/errors.md says of the code. */
function code(name: ErrorCode | DropCode | WarningCode): string {
  return `[\`${name}\`](errors.md#${name})`;
}

function table(head: Row, rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function fields(): readonly Row[] {
  const read = bytesText(tokenBytesRead);
  const keys = "`api_key`, else `token`, `$token`, `properties.token`";
  return [
    [
      "`event`",
      "yes",
      "text that is not empty or white space, of any length",
      `absent, empty, white space (as far as its first ${read}) or not text: left out, warning ${code("no_event")}. At \`/engage/\` an object without a name is a \`$identify\``,
    ],
    [
      "`distinct_id`, else `$distinct_id`, else either in `properties`",
      "yes",
      `text of ${distinctIdCharactersMax} characters`,
      `absent in all places, or empty or white space in the first that has one: left out, warning ${code("no_distinct_id")}. Longer: stored as its first ${idBeginningCharacters} characters, a tilde and the SHA-256 of all of it, with a warning ${code("id_shortened")}, the longer one in \`replaced\`. A number, boolean, array or object: normalised to its compact JSON text`,
    ],
    [
      keys,
      "in an event that is sent by itself",
      `text of ${keyCharsMax} printable ASCII characters; white space around it does not count`,
      `absent: the request is answered 401 ${code("missing_api_key")}; no project has it: 401 ${code("unknown_api_key")}. In the events of a batch it does not count ([event, batch, array](events.md#event-batch-array))`,
    ],
    [
      "`timestamp`",
      "no",
      `text or a number, [a time](events.md#time)`,
      `absent: stored with the time of receipt, in an import with a warning ${code("missing_timestamp")}. Not a time: stored with the time of receipt, or with what \`offset\` says, and a warning ${code("invalid_timestamp")}; the record keeps what was sent in [\`replaced\`](../guides/reading.md#a-record). A zero time (year 0 or 1, 1970-01-01T00:00:00Z, or the number 0) counts as absent: warning ${code("zero_timestamp")}`,
    ],
    [
      "`offset`",
      "no",
      "a number: how many milliseconds ago it happened; counts before `timestamp`",
      `no number, or leads to a year before 0 or past 9999: not used, warning ${code("invalid_offset")}; kept in \`replaced\``,
    ],
    [
      "`uuid`",
      "no",
      `text, a UUID of any version, ${uuidBytes} characters`,
      `absent or empty: a new one of version 7. That of the event before in the request, on an event with another name or distinct id: stored as another event, warning ${code("reused_uuid")}. In upper case: normalised to lower case. Not a UUID, or the nil or the max UUID (all zeros, all \`f\`): a new one, warning ${code("invalid_uuid")}; kept in \`replaced\``,
    ],
    [
      "`properties`",
      "no",
      "an object, with what you like",
      `absent, or an empty array: stored as \`{}\`. Anything else: error ${code("invalid_properties")}`,
    ],
    [
      "`$set`, `$set_once`, also in `properties`",
      "no",
      `an object each. Where both places have one, they are merged, key by key, the top level's values count, and both together have ${bytesText(mergedBytesMax)}`,
      `an empty array: counts as \`{}\`. Anything else: only kept in \`replaced\`, warning ${code("invalid_object")}. In \`properties\`: they stay there, and are at the record's top level too. More to be merged: error ${code("event_too_large")}`,
    ],
    [
      "`$unset`, also in `properties`",
      "no",
      `an array of names, or an object whose keys they are; ${bytesText(namesBytesMax)} in both places together. Stored at the top level as one array, each name once`,
      `anything else: only kept in \`replaced\`, and within the array not stored, warning ${code("invalid_unset")}. More: error ${code("event_too_large")}`,
    ],
  ];
}

function properties(): readonly Row[] {
  return [
    [
      "`$group_set`, `$groups`",
      "an object each",
      `an empty array: stored as \`{}\`. Anything else: only kept in \`replaced\`, warning ${code("invalid_object")}`,
    ],
    [
      "`alias`, `$anon_distinct_id`, `$group_type`, `$group_key`, the keys in `$groups`",
      `ids of ${distinctIdCharactersMax} characters each. A value that is no text counts as its compact JSON text`,
      `longer: stays as it is, and counts as its shortened form, as a \`distinct_id\` does; warning ${code("id_shortened")}`,
    ],
    [
      "`$group_unset`",
      "an array of names, or an object whose keys they are; read from `$groupidentify` alone",
      `only kept in \`replaced\`, warning ${code("invalid_unset")}`,
    ],
    [
      "`$process_person_profile`",
      "a boolean. `false`: the record has `person_profile: false`",
      `taken as true, warning ${code("invalid_person_profile")}`,
    ],
    [
      "`$ignore_sent_at`",
      "`true`: the event's time is [not corrected](events.md#time)",
      "means nothing",
    ],
    [
      "`$set`, `$set_once`, `$unset`, `distinct_id`, `$distinct_id`, `token`",
      "as in the table above",
      "as in the table above",
    ],
  ];
}

function specialEvents(): readonly Row[] {
  return [
    [
      "`$create_alias`, `$merge_dangerously`",
      "`alias`, text that is not blank; any other value counts as its compact JSON text, as for `distinct_id`",
      `links nobody, warning ${code("missing_alias")}`,
    ],
    [
      "`$groupidentify`, `$group_identify`",
      "`$group_type` and `$group_key`, each as `alias`",
      `changes no group, warning ${code("missing_group")}`,
    ],
    ["the same", "`$group_set`", `warning ${code("missing_group_set")}`],
    [
      "`survey sent`, `survey shown`, `survey dismissed`",
      "`$survey_id`, text that is not empty or a number",
      `warning ${code("missing_survey_id")}`,
    ],
    ["`$exception`", "`$exception_list`", `warning ${code("missing_exception_list")}`],
    [
      "`$ai_generation`, `$ai_span`, `$ai_trace`, `$ai_embedding`, `$ai_metric`, `$ai_feedback`",
      "`$ai_trace_id`",
      `warning ${code("missing_trace_id")}`,
    ],
    ["`$identify`", "`$set`, there or at the top level", `warning ${code("missing_set")}`],
    ["`$pageview`", "`$current_url`", `warning ${code("missing_current_url")}`],
    ["`$screen`", "`$screen_name`", `warning ${code("missing_screen_name")}`],
    [
      "`$performance_event`, which old browser SDKs send",
      "",
      'removed: neither `accepted` nor `dropped` counts it, `penstock_events_total{outcome="removed"}` does',
    ],
  ];
}

function whole(): readonly Row[] {
  const slow = bytesText(slowItemBytesMax);
  return [
    [
      "its type",
      "an object",
      `in a batch or an array: left out, warning ${code("not_an_object")}. The body itself: 400 ${code("invalid_payload")}`,
    ],
    [
      "objects and arrays within each other",
      `${depthMax}, the event counted`,
      `error ${code("too_deep")}`,
    ],
    ["digits of a number", String(numberDigitsMax), `error ${code("number_too_long")}`],
    [
      "its record",
      `what the store takes: the \`max_payload\` of nats-server (of the embedded one ${bytesText(messageBytesMax)}, else by default 1 MiB), or less if the stream is set so, less ${headerBytesMax} bytes. [The record](../guides/reading.md) has the properties as they came, person fields of \`properties\` a second time, ${bytesText(recordOverheadBytesMax)} more at most, and in \`replaced\` each value that it cannot have, of one longer than ${replacedBytesMax} bytes ${replacedCharactersMax} characters`,
      `error ${code("event_too_large")}, with both numbers`,
    ],
    [
      "the event, where it has escaped names in itself or its `properties`, U+0000 or lone surrogates",
      slow,
      `error ${code("event_too_large")}`,
    ],
    [
      "escaped names, and names that stand twice",
      "",
      `normalised: an escaped name is the name it stands for, and of names that stand twice in one object, at any depth, the last counts and is stored. In an event of more than ${slow} names that stand twice stay as they came`,
    ],
    [
      "U+0000 (`\\u0000`) and lone surrogates, in any name or value",
      "none",
      "normalised to U+FFFD",
    ],
    [
      "bytes that are not UTF-8",
      "none",
      `stored with U+FFFD in their place, or \`?\` once the body has grown by 2 MiB, warning ${code("invalid_utf8")}; a surrogate pair encoded as two sequences of three bytes is stored as its character`,
    ],
    [
      "`NaN`, `Infinity` and `-Infinity` as values",
      "none",
      `stored as \`null\`, warning ${code("non_finite_number")}`,
    ],
    [
      "events of one request",
      withDefault("requestEventsMax"),
      `the request is answered 413 ${code("too_many_events")}`,
    ],
    [
      "the body; after decompression",
      `${withDefault("bodyBytesMax")}; ${withDefault("inflatedBytesMax")}`,
      `the request is answered 413 ${code("body_too_large")}; ${code("inflated_too_large")}`,
    ],
    [
      "an event at which the gateway itself fails",
      "none",
      `error ${code("unreadable_event")}, and a line in the gateway's log`,
    ],
  ];
}

function storedFields(): readonly Row[] {
  return Object.entries(recordFields).map(([name, field]: [string, RecordField]) => [
    `\`${name}\``,
    `${typeWords[field.type]}${field.isOptional ? ", may be absent" : ""}`,
    field.from,
    field.most,
    field.column === undefined ? "" : `\`${field.column}\``,
    field.description,
  ]);
}

const typeWords = {
  id: "text",
  uuid: "a UUID, text",
  text: "text",
  time: "a time, text: UTC, milliseconds",
  boolean: "a boolean",
  object: "an object",
  names: "an array of texts",
} as const satisfies Record<FieldType, string>;

function newerProtocol(): readonly Row[] {
  const id = code("distinct_id_too_long");
  return [
    [
      "a `uuid` that is absent, no UUID, or another event's of the batch (except the nil and the max UUID)",
      "the request is a 400",
    ],
    [
      `an \`event\` of more than ${eventNameCharactersMax} characters, a distinct id of more than ${distinctIdCharactersMax}`,
      `drop, ${code("event_name_too_long")}; ${id}`,
    ],
    [
      `\`session_id\` or \`window_id\` that is no text; \`options\` that are no object (\`[]\` counts as \`{}\`); a switch among them that is neither a boolean nor \`"true"\`, \`"false"\`, \`"1"\`, \`"0"\` or a number; a \`product_tour_id\` that is neither text nor a whole number; any of them over ${bytesText(additionBytesMax)}`,
      `ignored, and kept in \`replaced\` (of \`options\` all); warning ${code("invalid_options")}`,
    ],
    [
      `an event of more than ${bytesText(slowItemBytesMax)} with what is put into its \`properties\``,
      `drop, ${code("event_too_large")}`,
    ],
    ["`timestamp` absent", `warning, ${code("missing_timestamp")}`],
    ["`$performance_event`", "drop, `performance_event`"],
  ];
}

function times(): readonly Row[] {
  return [
    [
      "when it happened",
      `${aheadMsMax / 3_600_000} hours ahead of the gateway's clock`,
      `stored with the time of receipt, warning ${code("timestamp_in_future")}`,
    ],
    [
      "the same",
      "in the years 0 to 9999",
      `stored with the time of receipt, warning ${code("invalid_timestamp")}`,
    ],
    [
      "`sent_at`, of a request, in its body or its query",
      "[a time](events.md#time) that is no zero time; in the query milliseconds since 1970",
      `where the other place has one that can be read, that counts; else nothing is corrected. A warning ${code("invalid_sent_at")} stands at the first event that is stored, and each record has what was sent in the body in \`replaced\``,
    ],
  ];
}

/** The default of a setting, and its name. */
function withDefault(name: SettingName): string {
  const { fallback, unit } = settings[name];
  const value =
    unit === "bytes" ? bytesText(Number(fallback)) : Number(fallback).toLocaleString("en-US");
  return `${value} (\`${variableOf(name)}\`)`;
}
