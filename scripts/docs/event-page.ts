// Writes docs/reference/event-fields.md. All numbers, defaults and codes come from tables in the
// code.

import { slowItemBytesMax } from "../../src/gateway/intake/plain-form.ts";
import { itemNotesMax } from "../../src/gateway/intake/tally.ts";
import { additionBytesMax } from "../../src/gateway/intake/v1/additions.ts";
import { keyCharsMax } from "../../src/gateway/projects/registry/bucket.ts";
import type { ErrorCode } from "../../src/platform/base/errors.ts";
import { variableOf } from "../../src/platform/base/setting-name.ts";
import type { DropCode, WarningCode } from "../../src/platform/base/warnings.ts";
import { messageBytesMax } from "../../src/platform/embedded/nats-config.ts";
import { headerBytesMax } from "../../src/platform/nats/names.ts";
import { type SettingName, settings } from "../../src/platform/settings/config.ts";
import { distinctIdCharactersMax, idBeginningCharacters } from "../../src/records/distinct-id.ts";
import { aheadMsMax } from "../../src/records/event-time.ts";
import { type FieldType, type RecordField, recordFields } from "../../src/records/fields.ts";
import { eventNameCharactersMax } from "../../src/records/guards.ts";
import { mergedBytesMax, namesBytesMax } from "../../src/records/person-fields.ts";
import { recordOverheadBytesMax } from "../../src/records/record.ts";
import { depthMax, numberDigitsMax } from "../../src/records/table.ts";
import { tokenBytesRead } from "../../src/records/token-beginning.ts";
import { uuidBytes } from "../../src/records/uuid.ts";
import { replacedBytesMax, replacedCharactersMax } from "../../src/records/verdict.ts";
import { bytesText, generatedFrom } from "./words.ts";

const introduction = `# What one event may have

${generatedFrom("scripts/docs/event-page.ts")}

[The interface](events.md) describes how events are sent. This page describes one event: its fields, their limits, and the consequence if a field is invalid. An invalid event does not affect other events. There are four outcomes:

| Outcome | Stored | Counted as | Listed in |
|---|---|---|---|
| skipped | no | \`dropped\` | \`warnings\` |
| error | no | \`dropped\` | \`errors\`; if all events of the request are in error, the request is answered with the first error as a 4xx |
| warning | yes | \`accepted\` | \`warnings\` |
| normalised | yes, changed | \`accepted\` | |

An answer lists at most ${itemNotesMax} errors and ${itemNotesMax} warnings, and states the total numbers. In [the newer protocol](newer-protocol.md) each event has its own result: \`drop\` for the first two outcomes, \`warning\` or \`ok\` for the other outcomes.

The smallest valid event is \`{"event":"signed up","distinct_id":"user-1"}\`, plus the key. \`null\` counts as absent in all fields of this page.`;

export function eventPage(): string {
  return `${[
    introduction,
    `## Fields\n\n${table(["Field", "Required", "Value and limit", "If it is invalid"], fields())}`,
    "All other fields at the top level are ignored: put data into `properties`. The newer protocol has three more fields, which are stored in `properties`: [`session_id`, `window_id` and `options`](newer-protocol.md#the-request).",
    `## Properties with a meaning\n\nAll other properties are stored unchanged, with any name and type.\n\n${table(["In `properties`", "Value", "If it is invalid"], properties())}`,
    `## Events whose name says what they must have\n\n${table(["Event", "Required in `properties`", "If it is missing"], specialEvents())}`,
    `## The event as a whole\n\n${table(["What", "Limit", "Beyond it"], whole())}`,
    `## The stored record\n\nEach event is stored as one line of JSON with these fields, in this order. Readers receive the stored line ([an example](../guides/reading.md#a-record)). PostgreSQL, ClickHouse and Parquet files have the columns in the table.\n\n${table(["Field", "Type", "Read from", "Limit", "Column", "Meaning"], storedFields())}`,
    `## In the newer protocol\n\nThe rules above apply, with these differences:\n\n${table(["Input", "Result"], newerProtocol())}`,
    `## Times\n\n[Time](events.md#time) lists the formats of a time and describes the correction of client clocks. The limits apply to the corrected time.\n\n${table(["What", "Limit", "Beyond it"], times())}`,
  ].join("\n\n")}\n`;
}

function code(name: ErrorCode | DropCode | WarningCode): string {
  return `[\`${name}\`](errors.md#${name})`;
}

function table(head: readonly string[], rows: string): string {
  return `| ${head.join(" | ")} |\n|${"---|".repeat(head.length)}\n${rows}`;
}

function fields(): string {
  const read = bytesText(tokenBytesRead);
  const keys = "`api_key`, else `token`, `$token`, `properties.token`";
  return `| \`event\` | yes | text that is not empty or white space, of any length | absent, empty, white space (in its first ${read}) or not text: skipped, warning ${code("no_event")}. At \`/engage/\` an object without a name is a \`$identify\` |
| \`distinct_id\`, else \`$distinct_id\`, else either in \`properties\` | yes | text of at most ${distinctIdCharactersMax} characters | absent everywhere, or empty or white space in the first of these fields that is present: skipped, warning ${code("no_distinct_id")}. Longer: stored as its first ${idBeginningCharacters} characters, a tilde and the SHA-256 of the whole id, with a warning ${code("id_shortened")}; \`replaced\` has the original. A number, boolean, array or object: normalised to its compact JSON text |
| ${keys} | in an event that is sent alone | text of at most ${keyCharsMax} printable ASCII characters; white space around it is ignored | absent: the request is answered 401 ${code("missing_api_key")}; unknown: 401 ${code("unknown_api_key")}. Ignored in the events of a batch ([event, batch, array](events.md#event-batch-array)) |
| \`timestamp\` | no | text or a number, [a time](events.md#time) | absent: stored with the time of receipt, in an import with a warning ${code("missing_timestamp")}. Not a time: stored with the time of receipt or the time from \`offset\`, and a warning ${code("invalid_timestamp")}; [\`replaced\`](../guides/reading.md#a-record) has the original. A zero time (year 0 or 1, 1970-01-01T00:00:00Z, or the number 0) counts as absent: warning ${code("zero_timestamp")} |
| \`offset\` | no | a number: the age of the event in milliseconds; takes precedence over \`timestamp\` | not a number, or leads to a year before 0 or after 9999: ignored, warning ${code("invalid_offset")}; stored in \`replaced\` |
| \`uuid\` | no | text, a UUID of any version, ${uuidBytes} characters | absent or empty: a new uuid of version 7. The same uuid as the previous event of the request, with a different name or distinct id: this event is stored as a separate event, warning ${code("reused_uuid")}. In upper case: normalised to lower case. Not a UUID, or the nil or the max UUID (all zeros, all \`f\`): a new uuid, warning ${code("invalid_uuid")}; \`replaced\` has the original |
| \`properties\` | no | an object with any content | absent, or an empty array: stored as \`{}\`. Anything else: error ${code("invalid_properties")} |
| \`$set\`, \`$set_once\`, also in \`properties\` | no | an object each. If the top level and \`properties\` both have one, the two are merged by key, and the values of the top level win; both together may have ${bytesText(mergedBytesMax)} | an empty array: counts as \`{}\`. Anything else: stored in \`replaced\` only, warning ${code("invalid_object")}. Fields in \`properties\` stay there and are copied to the record's top level. Larger: error ${code("event_too_large")} |
| \`$unset\`, also in \`properties\` | no | an array of names, or an object with the names as keys; ${bytesText(namesBytesMax)} in the top level and \`properties\` together. Stored at the top level as one array without repetitions | anything else: stored in \`replaced\` only; other values in the array are not stored. Warning ${code("invalid_unset")}. Larger: error ${code("event_too_large")} |`;
}

function properties(): string {
  return `| \`$group_set\`, \`$groups\` | an object each | an empty array: stored as \`{}\`. Anything else: stored in \`replaced\` only, warning ${code("invalid_object")} |
| \`alias\`, \`$anon_distinct_id\`, \`$group_type\`, \`$group_key\`, the keys in \`$groups\` | ids of at most ${distinctIdCharactersMax} characters each. Other values count as their compact JSON text | longer: stored unchanged, but counts as its shortened form, like a \`distinct_id\`; warning ${code("id_shortened")} |
| \`$group_unset\` | an array of names, or an object with the names as keys; read only from \`$groupidentify\` | stored in \`replaced\` only, warning ${code("invalid_unset")} |
| \`$process_person_profile\` | a boolean. \`false\`: the record has \`person_profile: false\` | counts as true, warning ${code("invalid_person_profile")} |
| \`$ignore_sent_at\` | \`true\`: the event's time is [not corrected](events.md#time) | ignored |
| \`$set\`, \`$set_once\`, \`$unset\`, \`distinct_id\`, \`$distinct_id\`, \`token\` | as in the table above | as in the table above |`;
}

function specialEvents(): string {
  return `| \`$create_alias\`, \`$merge_dangerously\` | \`alias\`, a text that is not blank; other values count as their compact JSON text, as for \`distinct_id\` | links no persons, warning ${code("missing_alias")} |
| \`$groupidentify\`, \`$group_identify\` | \`$group_type\` and \`$group_key\`, with the rules of \`alias\` | changes no group, warning ${code("missing_group")} |
| \`$groupidentify\`, \`$group_identify\` | \`$group_set\` | warning ${code("missing_group_set")} |
| \`survey sent\`, \`survey shown\`, \`survey dismissed\` | \`$survey_id\`, a number or a text that is not empty | warning ${code("missing_survey_id")} |
| \`$exception\` | \`$exception_list\` | warning ${code("missing_exception_list")} |
| \`$ai_generation\`, \`$ai_span\`, \`$ai_trace\`, \`$ai_embedding\`, \`$ai_metric\`, \`$ai_feedback\` | \`$ai_trace_id\` | warning ${code("missing_trace_id")} |
| \`$identify\` | \`$set\`, or \`$set\` at the top level | warning ${code("missing_set")} |
| \`$pageview\` | \`$current_url\` | warning ${code("missing_current_url")} |
| \`$screen\` | \`$screen_name\` | warning ${code("missing_screen_name")} |
| \`$performance_event\` of old browser SDKs |  | not stored; counted in \`penstock_events_total{outcome="removed"}\`, but neither as \`accepted\` nor as \`dropped\` |`;
}

function whole(): string {
  const slow = bytesText(slowItemBytesMax);
  return `| its type | an object | in a batch or an array: skipped, warning ${code("not_an_object")}. The body itself: 400 ${code("invalid_payload")} |
| a cookieless event, in a project with [\`cookieless: true\`](../concepts/rules.md#cookieless-events) | an address, a User-Agent and a host, and a day that is not over | skipped, warning ${code("no_cookieless_id")} |
| nested objects and arrays | ${depthMax} levels, including the event | error ${code("too_deep")} |
| digits of a number | ${String(numberDigitsMax)} | error ${code("number_too_long")} |
| its record | the \`max_payload\` of nats-server (embedded: ${bytesText(messageBytesMax)}; otherwise 1 MiB by default) or the smaller limit of the stream, less ${headerBytesMax} bytes. [The record](../guides/reading.md) has the properties as sent, a copy of the person fields of \`properties\`, \`replaced\`, and at most ${bytesText(recordOverheadBytesMax)} more. \`replaced\` has ${replacedCharactersMax} characters of each value longer than ${replacedBytesMax} bytes | error ${code("event_too_large")}, with both numbers |
| an event with escaped names (in itself or its \`properties\`), U+0000 or lone surrogates | ${slow} | error ${code("event_too_large")} |
| escaped names and repeated names |  | normalised: names are unescaped, and of repeated names in one object, at any depth, the last is stored. In an event of more than ${slow}, repeated names are stored unchanged |
| U+0000 (\`\\u0000\`) and lone surrogates, in any name or value | none | normalised to U+FFFD |
| bytes that are not UTF-8 | none | replaced by U+FFFD, or by \`?\` after the body has grown by 2 MiB; warning ${code("invalid_utf8")}. A surrogate pair encoded as two sequences of three bytes is stored as its character |
| \`NaN\`, \`Infinity\` and \`-Infinity\` as values | none | stored as \`null\`, warning ${code("non_finite_number")} |
| events of one request | ${withDefault("requestEventsMax")} | the request is answered 413 ${code("too_many_events")} |
| the body; after decompression | ${withDefault("bodyBytesMax")}; ${withDefault("inflatedBytesMax")} | the request is answered 413 ${code("body_too_large")}; ${code("inflated_too_large")} |
| an event that the gateway fails to process | none | error ${code("unreadable_event")}, and an entry in the gateway's log |`;
}

function storedFields(): string {
  return Object.entries(recordFields)
    .map(([name, { type, isOptional, from, most, column, description }]: [string, RecordField]) => {
      const words = `${typeWords[type]}${isOptional ? ", may be absent" : ""}`;
      const stored = column === undefined ? "" : `\`${column}\``;
      return `| \`${name}\` | ${words} | ${from} | ${most} | ${stored} | ${description} |`;
    })
    .join("\n");
}

const typeWords = {
  id: "text",
  uuid: "a UUID, text",
  text: "text",
  time: "a time, text: UTC, milliseconds",
  boolean: "a boolean",
  integer: "an integer",
  object: "an object",
  names: "an array of texts",
} as const satisfies Record<FieldType, string>;

function newerProtocol(): string {
  const id = code("distinct_id_too_long");
  return `| a \`uuid\` that is absent, invalid or repeated in the batch (except the nil and the max UUID) | the request is a 400 |
| an \`event\` of more than ${eventNameCharactersMax} characters, a distinct id of more than ${distinctIdCharactersMax} | drop, ${code("event_name_too_long")}; ${id} |
| \`session_id\` or \`window_id\` that is not a text; \`options\` that is not an object (\`[]\` counts as \`{}\`); a switch in it that is not a boolean, a number, \`"true"\`, \`"false"\`, \`"1"\` or \`"0"\`; a \`product_tour_id\` that is neither a text nor a whole number; any of them over ${bytesText(additionBytesMax)} | ignored, and stored in \`replaced\` (\`options\` as a whole), but unreadable options that may have \`cookieless_mode\` count as \`true\`; warning ${code("invalid_options")} |
| an event that gets fields added to its \`properties\` (\`$lib\` of the request, \`session_id\`, \`window_id\` or \`options\`), and has more than ${bytesText(slowItemBytesMax)} with them | drop, ${code("event_too_large")} |
| \`timestamp\` absent | warning, ${code("missing_timestamp")} |
| \`$performance_event\` | drop, \`performance_event\` |`;
}

function times(): string {
  return `| the time of the event | ${aheadMsMax / 3_600_000} hours ahead of the gateway's clock | stored with the time of receipt, warning ${code("timestamp_in_future")} |
| the time of the event | years 0 to 9999 | stored with the time of receipt, warning ${code("invalid_timestamp")} |
| \`sent_at\` of a request, in its body or its query | [a time](events.md#time) other than a zero time; in the query, milliseconds since 1970 | a valid one in the other of the two counts; otherwise times are not corrected. The first stored event gets a warning ${code("invalid_sent_at")}, and \`replaced\` of each record has the value from the body |`;
}

function withDefault(name: SettingName): string {
  const { fallback, unit } = settings[name];
  const value =
    unit === "bytes" ? bytesText(Number(fallback)) : Number(fallback).toLocaleString("en-US");
  return `${value} (\`${variableOf(name)}\`)`;
}
