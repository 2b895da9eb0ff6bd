// The warnings in a 200 answer. The reference pages are generated from these tables.

import type { ErrorRow } from "./errors.ts";

export const dropTable = {
  no_event: {
    when: "the event has no name: event is absent, not a string, empty or only white space",
    remedy: "Send the name in event. If a member looks like a misspelt event, the detail names it.",
  },
  no_distinct_id: {
    when: "distinct_id is absent, null, empty or only white space",
    remedy:
      "Send an id in distinct_id or in properties.distinct_id. If a member looks like a misspelt distinct_id, the detail names it.",
  },
  not_an_object: {
    when: "an item of a batch is not an object",
    remedy: "Send each event as an object, encoded once.",
  },
  no_cookieless_id: {
    when: "the project's rules have `cookieless: true`, and a cookieless event cannot have an id: it lacks an address, a User-Agent or a host, its day is over in all time zones, or it is `$identify`, `$create_alias` or `$merge_dangerously`",
    remedy:
      "The detail names the reason. Send $raw_user_agent and $host as posthog-js does, and send events on the day on which they happen.",
  },
} as const satisfies Record<string, Pick<ErrorRow, "when" | "remedy">>;
export type DropCode = keyof typeof dropTable;

interface WarningRow extends Pick<ErrorRow, "when" | "remedy"> {
  readonly detail: string;
}

export const warningTable = {
  missing_set: {
    detail: "$identify has no $set",
    when: "$identify without $set",
    remedy: "Send the properties of the person in $set. Otherwise ignore this warning.",
  },
  missing_group_set: {
    detail: "$groupidentify has no $group_set",
    when: "$groupidentify without $group_set",
    remedy:
      "Send the properties of the group in properties.$group_set. Otherwise ignore this warning.",
  },
  missing_alias: {
    detail: "the event has no properties.alias: the event is stored without linking ids",
    when: "$create_alias or $merge_dangerously without properties.alias: the event is stored without linking ids",
    remedy: "Send the other id of the person in properties.alias.",
  },
  missing_group: {
    detail:
      "the event has no $group_type or no $group_key: the event is stored without changing a group",
    when: "$groupidentify without properties.$group_type or $group_key: the event is stored without changing a group",
    remedy:
      'Send $group_type and $group_key in properties, for example $group_type "company" and $group_key with the id of the company.',
  },
  missing_survey_id: {
    detail: "the survey event has no $survey_id",
    when: "a survey event without properties.$survey_id",
    remedy: "Send the id of the survey in properties.$survey_id.",
  },
  missing_exception_list: {
    detail: "$exception has no $exception_list",
    when: "$exception without properties.$exception_list",
    remedy: "Send exceptions with the SDK, or in properties.$exception_list.",
  },
  missing_trace_id: {
    detail: "the AI event has no $ai_trace_id",
    when: "$ai_generation, $ai_span, $ai_trace, $ai_embedding, $ai_metric or $ai_feedback without properties.$ai_trace_id",
    remedy: "Send the id of the trace in properties.$ai_trace_id.",
  },
  missing_current_url: {
    detail: "$pageview has no $current_url",
    when: "$pageview without $current_url",
    remedy: "Send the address of the page in properties.$current_url.",
  },
  missing_screen_name: {
    detail: "$screen has no $screen_name",
    when: "$screen without $screen_name",
    remedy: "Send the name of the screen in properties.$screen_name.",
  },
  missing_timestamp: {
    detail: "timestamp is absent: the event is stored with the time of receipt",
    when: "timestamp is absent, on the historical lane or in the newer protocol: the event is stored with the time of receipt",
    remedy: "Send the time of the event in timestamp, for example 2026-01-31T23:59:59.999Z.",
  },
  invalid_timestamp: {
    detail:
      'timestamp is invalid: the event is stored with the time of receipt, minus offset if present. Send ISO 8601 text, such as "2026-11-22T07:00:00.000Z"',
    when: "timestamp is invalid: the event is stored with the time of receipt; the record retains the original value",
    remedy: "Send timestamp as text in ISO 8601, for example 2026-01-31T23:59:59.999Z.",
  },
  zero_timestamp: {
    detail:
      "timestamp is a zero time, which usually means that it was never set: the event is stored with the time of receipt, minus offset if present",
    when: "timestamp is in year 0 or 1, is 1970-01-01T00:00:00Z or the number 0: the event is stored with the time of receipt",
    remedy: "Set the time before sending the event, or omit timestamp.",
  },
  timestamp_in_future: {
    detail:
      "timestamp is more than 23 hours in the future: the event is stored with the time of receipt",
    when: "timestamp is more than 23 hours in the future, after correction: the event is stored with the time of receipt",
    remedy: "Set the clock of the client, or send sent_at, which corrects the error of the clock.",
  },
  invalid_sent_at: {
    detail:
      "sent_at is invalid, so the error of the client's clock is not corrected, unless the query has a valid sent_at",
    when: "sent_at is invalid, in the body or the query: timestamps are not corrected. The warning is reported for the first stored event",
    remedy: "Send sent_at as text in ISO 8601, and in the query in milliseconds since 1970.",
  },
  invalid_offset: {
    detail:
      "offset is not a number of milliseconds, or gives a time outside the years 0 to 9999: the gateway ignores offset",
    when: "offset is not a number, or gives a time outside the years 0 to 9999: the gateway ignores offset",
    remedy: "Send offset as a number: the milliseconds since the event happened.",
  },
  id_shortened: {
    detail:
      "an id in distinct_id, alias, $anon_distinct_id, $group_type, $group_key or $groups has more than 400 characters: the gateway shortens the id and adds a hash",
    when: "a distinct id, alias, $anon_distinct_id, group type or group key has more than 400 characters: the id is replaced by its first 356 characters, a tilde and a hash of the whole id",
    remedy: "Send ids of at most 400 characters.",
  },
  invalid_object: {
    detail: "$set, $set_once, $group_set or $groups is not an object: the gateway ignores it",
    when: "$set, $set_once, $group_set or $groups is not an object, null or an empty array: the gateway does not store it",
    remedy: "Send it as an object, encoded once, or omit it.",
  },
  invalid_unset: {
    detail: "$unset or $group_unset is not an array of names or an object: the gateway ignores it",
    when: "$unset or $group_unset, or an item of $unset, is not an array of names or an object with the names as keys: the gateway ignores it",
    remedy: "Send the names as an array of strings.",
  },
  invalid_options: {
    detail:
      "options, one of its members, session_id or window_id is invalid: the gateway ignores it",
    when: "in the newer protocol, options, one of its members, session_id or window_id has an invalid value: the gateway ignores it",
    remedy: "Send options as an object, and session_id and window_id as strings, or omit them.",
  },
  invalid_uuid: {
    detail:
      "uuid is not a UUID, or is the nil or the max UUID: the event is stored with a new uuid",
    when: "uuid is present and is not a UUID, or is the nil or the max UUID (all zeros, all f): the event is stored with a new uuid",
    remedy: "Send a unique UUID per event, so that readers can deduplicate retries, or omit it.",
  },
  reused_uuid: {
    detail:
      "the previous event has the same uuid but a different name or distinct id: this event is stored as a separate event",
    when: "the previous event in the request has the same uuid but a different name or distinct id: this event is stored as a separate event",
    remedy: "Give each event its own uuid, and use the same uuid in a retry.",
  },
  invalid_person_profile: {
    detail: "$process_person_profile is not a boolean: the gateway uses true",
    when: "$process_person_profile is not a boolean: the gateway uses true",
    remedy: "Send properties.$process_person_profile as true or false, without quotes.",
  },
  invalid_utf8: {
    detail: "the event has bytes that are not UTF-8: the gateway stores U+FFFD in their place",
    when: "the event has bytes that are not UTF-8: the gateway stores U+FFFD in their place",
    remedy: "Encode the body as UTF-8. The original bytes are not stored.",
  },
  non_finite_number: {
    detail:
      "the event has NaN, Infinity or -Infinity, which JSON does not have: the gateway stores null",
    when: "the event has the value `NaN`, `Infinity` or `-Infinity`: the gateway stores null",
    remedy:
      "Send null, or omit the member. Python's json module reports these values with allow_nan=False.",
  },
} as const satisfies Record<string, WarningRow>;
export type WarningCode = keyof typeof warningTable;
export const warningCodes = Object.keys(warningTable) as readonly WarningCode[];
