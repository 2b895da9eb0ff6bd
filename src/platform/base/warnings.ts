// The warnings that a 200 can carry: items that are left out, and items that are stored otherwise
// than they were sent. The documents are generated from both tables, as they are from the table of
// errors.

import type { ErrorRow } from "./errors.ts";

/**
 * The reasons for which an item is left out of a request that is answered 200 all the same. The
 * answer names them in its warnings.
 */
export const dropTable = {
  no_event: {
    when: "the event has no name: event is absent, not text, empty or only white space",
    remedy:
      "Put the name into event. The detail names a member that looks like it, if there is one.",
  },
  no_distinct_id: {
    when: "nobody knows who it was: distinct_id is absent, null, empty or only white space",
    remedy:
      "Put an id into distinct_id, or into properties.distinct_id. The detail names a member that looks like it, if there is one.",
  },
  not_an_object: {
    when: "an item of a batch is not an object",
    remedy: "Send each event as an object, and encode it once.",
  },
} as const satisfies Record<string, Pick<ErrorRow, "when" | "remedy">>;
export type DropCode = keyof typeof dropTable;

interface WarningRow extends Pick<ErrorRow, "when" | "remedy"> {
  /** The text of the warning in an answer. */
  readonly detail: string;
}

/** The warnings on items that are stored. The answer names them in the same place. */
export const warningTable = {
  missing_set: {
    detail: "$identify carries no $set",
    when: "$identify without $set",
    remedy: "Put what is known of the person into $set; if nothing is, leave the event as it is.",
  },
  missing_group_set: {
    detail: "$groupidentify carries no $group_set",
    when: "$groupidentify without $group_set",
    remedy:
      "Put what is known of the group into properties.$group_set; if nothing is, leave the event as it is.",
  },
  missing_alias: {
    detail: "the event has no properties.alias: it links nobody",
    when: "$create_alias or $merge_dangerously without properties.alias: stored, links nobody",
    remedy: "Put the other id of the person into properties.alias.",
  },
  missing_group: {
    detail: "the event has no $group_type or no $group_key: it changes no group",
    when: "$groupidentify without properties.$group_type or $group_key: stored, changes no group",
    remedy:
      'Put both into properties: $group_type, as "company", and $group_key, as the id of that company.',
  },
  missing_survey_id: {
    detail: "the survey event has no $survey_id",
    when: "a survey event without properties.$survey_id",
    remedy: "Put the id of the survey into properties.$survey_id.",
  },
  missing_exception_list: {
    detail: "$exception carries no $exception_list",
    when: "$exception without properties.$exception_list",
    remedy: "Send exceptions with the SDK, or put them into properties.$exception_list.",
  },
  missing_trace_id: {
    detail: "the AI event carries no $ai_trace_id",
    when: "$ai_generation, $ai_span, $ai_trace, $ai_embedding, $ai_metric or $ai_feedback without properties.$ai_trace_id",
    remedy: "Put the id of the trace into properties.$ai_trace_id.",
  },
  missing_current_url: {
    detail: "$pageview carries no $current_url",
    when: "$pageview without $current_url",
    remedy: "Put the address of the page into properties.$current_url.",
  },
  missing_screen_name: {
    detail: "$screen carries no $screen_name",
    when: "$screen without $screen_name",
    remedy: "Put the name of the screen into properties.$screen_name.",
  },
  missing_timestamp: {
    detail: "timestamp is absent: stored with the time of receipt",
    when: "timestamp is absent, on the historical lane or in the newer protocol: stored with the time of receipt",
    remedy:
      "Say when it happened in timestamp, as 2026-01-31T23:59:59.999Z: history has no other time.",
  },
  invalid_timestamp: {
    detail:
      'timestamp cannot be read, and must be ISO 8601 text, as "2026-11-22T07:00:00.000Z": stored with the time of receipt, or with what offset says',
    when: "timestamp cannot be read: stored with the time of receipt; the record keeps what was sent",
    remedy: "Write timestamp as text in ISO 8601, as 2026-01-31T23:59:59.999Z.",
  },
  zero_timestamp: {
    detail:
      "timestamp is a zero time, which programs write for a time that was never set: stored with the time of receipt, or with what offset says",
    when: "timestamp is in year 0 or 1, is 1970-01-01T00:00:00Z, or the number 0: stored with the time of receipt",
    remedy: "Set the time before the event is sent, or leave timestamp out.",
  },
  timestamp_in_future: {
    detail: "the event lies more than 23 hours ahead: stored with the time of receipt",
    when: "the event lies more than 23 hours ahead, after correction: stored with the time of receipt",
    remedy: "Set the client's clock, or send sent_at, by which its error is corrected.",
  },
  invalid_sent_at: {
    detail:
      "sent_at cannot be read: timestamps are stored as they came, unless the query says when it was sent",
    when: "sent_at cannot be read, in the body or the query: nothing is corrected. It stands at the first event that is stored",
    remedy: "Write sent_at as text in ISO 8601, and in the query in milliseconds since 1970.",
  },
  invalid_offset: {
    detail: "offset is no number of milliseconds that leads to a year from 0 to 9999: left aside",
    when: "offset is no number, or leads to a year before 0 or past 9999: left aside",
    remedy: "Send offset as a number: how many milliseconds ago the event happened.",
  },
  id_shortened: {
    detail:
      "an id of more than 400 characters, in distinct_id, alias, $anon_distinct_id, $group_type, $group_key or $groups: it counts as its first 356 characters and a hash",
    when: "a distinct id, alias, $anon_distinct_id, group type or group key has more than 400 characters: it counts as its first 356 characters, a tilde and a hash of all of it",
    remedy: "Send ids of 400 characters at most.",
  },
  invalid_object: {
    detail: "$set, $set_once, $group_set or $groups is not an object: ignored",
    when: "$set, $set_once, $group_set or $groups is not an object, null or an empty array: not stored",
    remedy: "Send it as an object, encoded once, or leave it out.",
  },
  invalid_unset: {
    detail: "$unset or $group_unset is not an array of names or an object with them: ignored",
    when: "$unset or $group_unset, or something in $unset, is not an array of names or an object whose keys they are: ignored",
    remedy: "Send the names as an array of strings.",
  },
  invalid_options: {
    detail: "options, one of its members, session_id or window_id cannot be read: ignored",
    when: "in the newer protocol, an event's options, one of its members, session_id or window_id is not what it must be: ignored",
    remedy: "Make options an object, and session_id and window_id text, or leave them out.",
  },
  invalid_uuid: {
    detail: "uuid is not a UUID, or is the nil or the max UUID: stored with a new one",
    when: "uuid is present and is not a UUID, or is the nil or the max UUID (all zeros, all f): stored with a new one",
    remedy: "Send a UUID of the client's own, so that what is stored twice can be told, or none.",
  },
  reused_uuid: {
    detail:
      "the event before has the same uuid, and another name or distinct id: stored as another event",
    when: "the event before in the request has the same uuid and another name or distinct id: stored as another event",
    remedy: "Give each event a uuid of its own, and send it again with the same one.",
  },
  invalid_person_profile: {
    detail: "$process_person_profile is not a boolean: taken as true",
    when: "$process_person_profile is not a boolean: taken as true",
    remedy: "Send properties.$process_person_profile as true or false, without quotes.",
  },
  invalid_utf8: {
    detail: "bytes that are not UTF-8: stored with U+FFFD in their place",
    when: "bytes that are not UTF-8 in the event: stored with U+FFFD in their place",
    remedy: "Encode the body as UTF-8. What the bytes stood for is lost in what is stored.",
  },
  non_finite_number: {
    detail: "NaN, Infinity or -Infinity, which JSON does not have: stored as null",
    when: "`NaN`, `Infinity` or `-Infinity` as a value in the event: stored as null",
    remedy:
      "Send null, or leave the member out. Python's json module needs allow_nan=False to report it.",
  },
} as const satisfies Record<string, WarningRow>;
export type WarningCode = keyof typeof warningTable;
export const warningCodes = Object.keys(warningTable) as readonly WarningCode[];
