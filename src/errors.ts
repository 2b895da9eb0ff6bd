// The closed table of everything a client can be told went wrong: status, title, and whether to retry.
// README.md documents each row; a test ties the two together. Nothing else in the tree makes up an error code.

export interface ErrorRow {
  readonly status: 400 | 401 | 404 | 405 | 413 | 415 | 429 | 503;
  readonly title: string;
}

export const errorTable = {
  empty_body: { status: 400, title: "The body is empty" },
  invalid_framing: { status: 400, title: "The body's length or chunks are not as they may be" },
  invalid_encoding: { status: 400, title: "The body is not in the encoding it claims" },
  invalid_json: { status: 400, title: "The body is not valid JSON" },
  invalid_header: { status: 400, title: "A header says something else than it should" },
  invalid_payload: { status: 400, title: "The body is not an event or a batch" },
  invalid_properties: { status: 400, title: "A field that must be an object is not" },
  missing_alias: { status: 400, title: "$create_alias needs properties.alias" },
  missing_group: { status: 400, title: "$groupidentify needs $group_type and $group_key" },
  missing_survey_id: { status: 400, title: "Survey events need $survey_id" },
  invalid_options: { status: 400, title: "The event's options, session_id or window_id cannot be read" },
  event_name_too_long: { status: 400, title: "The event's name is too long" },
  distinct_id_too_long: { status: 400, title: "The event's distinct id is too long" },
  too_deep: { status: 400, title: "The event is nested too deeply" },
  number_too_long: { status: 400, title: "A number has too many digits" },
  unreadable_event: { status: 400, title: "The gateway fails at this event" },
  missing_api_key: { status: 401, title: "No API key was sent" },
  unknown_api_key: { status: 401, title: "The API key is not known" },
  project_disabled: { status: 401, title: "The project is switched off" },
  not_found: { status: 404, title: "There is nothing at this path" },
  method_not_allowed: { status: 405, title: "This path does not take this method" },
  body_too_large: { status: 413, title: "The body is too large" },
  inflated_too_large: { status: 413, title: "The body is too large after decompression" },
  too_many_events: { status: 413, title: "The request holds too many events" },
  expands_too_far: { status: 413, title: "Too much would be stored for what was sent" },
  event_too_large: { status: 413, title: "The event is too large to be stored" },
  unsupported_encoding: { status: 415, title: "The content encoding is not supported" },
  rate_limited: { status: 429, title: "The project is over its limits" },
  overloaded: { status: 503, title: "Too much is in flight" },
  unavailable: { status: 503, title: "Events cannot be stored right now" },
  store_full: { status: 503, title: "The store is full" },
  project_full: { status: 503, title: "The project has filled its share of the store" },
  draining: { status: 503, title: "This gateway is shutting down" },
  timeout: { status: 503, title: "The store did not acknowledge in time" },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** The codes an item of a batch can end in. */
export const itemErrorCodes = [
  "invalid_properties",
  "missing_alias",
  "missing_group",
  "missing_survey_id",
  "invalid_options",
  "event_name_too_long",
  "distinct_id_too_long",
  "too_deep",
  "number_too_long",
  "event_too_large",
  "unreadable_event",
] as const satisfies readonly ErrorCode[];
export type ItemErrorCode = (typeof itemErrorCodes)[number];

/** The remarks an item can be stored with. */
export const warningCodes = [
  "missing_set",
  "missing_group_set",
  "missing_current_url",
  "missing_screen_name",
  "missing_timestamp",
  "invalid_timestamp",
  "timestamp_in_future",
  "invalid_sent_at",
  "invalid_offset",
  "invalid_unset",
  "invalid_uuid",
  "invalid_person_profile",
  "invalid_utf8",
] as const;
export type WarningCode = (typeof warningCodes)[number];

/** An expected failure of a whole request: a value, never thrown. `detail` goes to the client. */
export interface Problem {
  readonly code: ErrorCode;
  readonly detail: string;
  /** Which items were at fault, where the request was a batch. */
  readonly errors?: readonly { readonly index: number; readonly code: string; readonly detail: string }[];
  readonly errorsTotal?: number;
  /** The methods that are allowed, where they are not those of the endpoints. */
  readonly allow?: string;
  /** Milliseconds until it is worth trying again, where that is known. */
  readonly retryAfterMs?: number;
}
