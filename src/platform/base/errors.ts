// The errors that a client can receive. docs/reference/errors.md and the page /docs/errors are
// generated from this table.

/**
 * A project may store this many bytes per minute in addition to a multiple of the bytes that it
 * sends.
 */
export const expansionBytesAMinute = 67_108_864;
export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;

export interface ErrorRow {
  readonly status: 400 | 401 | 404 | 405 | 413 | 415 | 429 | 503;
  readonly title: string;
  readonly when: string;
  readonly remedy: string;
}

export const errorTable = {
  empty_body: {
    status: 400,
    title: "The body is empty",
    when: "the body is empty or contains only white space, or a GET has no data in its query",
    remedy: "Send the event or the batch in the body of the request, as JSON.",
  },
  invalid_framing: {
    status: 400,
    title: "Invalid Content-Length or chunk framing",
    when: "Content-Length, Transfer-Encoding or Host is repeated or empty, both Content-Length and Transfer-Encoding are present, the transfer coding is not chunked, or the body arrives in chunks of a few bytes. The gateway closes the connection. The HTTP library catches some of these errors and returns its own 400 page",
    remedy:
      "Use a standard HTTP library, and send Content-Length, Transfer-Encoding and Host at most once each. If there is a proxy, check whether it adds a second header.",
  },
  invalid_encoding: {
    status: 400,
    title: "The body does not match its declared encoding",
    when: "the body cannot be decompressed, is compressed twice, or does not match the base64 or lz64 that it declares. The gateway replaces malformed UTF-8; it returns this error if the result is not a JSON object, or if more than a million positions are malformed",
    remedy:
      "Send UTF-8. Compress it at most once, and name the compression in Content-Encoding. The detail states the position at which decoding failed, and what the bytes look like.",
  },
  invalid_json: {
    status: 400,
    title: "The body is not valid JSON",
    when: "the body is not JSON. The detail names the position and the error, and shows a few characters around the position, but never an API key",
    remedy:
      "Check the position that the detail names. Create the body with a JSON library instead of by hand.",
  },
  invalid_header: {
    status: 400,
    title: "Invalid header value",
    when: "a header of the newer protocol has an invalid value",
    remedy: "Send the header that the detail names in the format of the newer protocol.",
  },
  invalid_payload: {
    status: 400,
    title: "The body is not an event or a batch",
    when: "the body is neither an event nor a batch, or its conversion takes too much time or memory. The detail names the field or the reason",
    remedy:
      'Send one event, as {"api_key": ..., "event": ..., "distinct_id": ...}, or a batch, as {"api_key": ..., "batch": [...]}. The detail names the field.',
  },
  invalid_properties: {
    status: 400,
    title: "properties is not an object",
    when: "properties is not an object, null or an empty array",
    remedy: "Send properties as an object, encoded once, or omit it.",
  },
  event_name_too_long: {
    status: 400,
    title: "The event name is too long",
    when: "in the newer protocol, an event name has more than 200 characters. Appears only as the detail of a dropped event",
    remedy:
      "Send a name of at most 200 characters. Put values that differ between events into properties.",
  },
  distinct_id_too_long: {
    status: 400,
    title: "The distinct id is too long",
    when: "in the newer protocol, a distinct id has more than 400 characters. Appears only as the detail of a dropped event",
    remedy: "Send an id of at most 400 characters.",
  },
  too_deep: {
    status: 400,
    title: "The event is nested too deeply",
    when: "objects and arrays in the event are nested more than 100 levels deep",
    remedy: "Flatten the event, or send the deep part as text.",
  },
  number_too_long: {
    status: 400,
    title: "A number has too many digits",
    when: "the event has a number of more than 400 digits",
    remedy: "Send the number as text.",
  },
  unreadable_event: {
    status: 400,
    title: "The gateway failed to process this event",
    when: "the event triggers a bug in the gateway. The gateway logs the bug and stores the other events of the request",
    remedy: "Report the bug, with the event if possible. A retry returns the same error.",
  },
  missing_api_key: {
    status: 401,
    title: "No API key was sent",
    when: "the request has no API key, or the key is not a string. In an array of events, no event has a key",
    remedy:
      "Send the key of the project in api_key, next to event or batch. If a member looks like a misspelt api_key, the detail names it.",
  },
  unknown_api_key: {
    status: 401,
    title: "Unknown API key",
    when: "no project has this key, or the events of an array have different keys. The detail shows the length and at most the first 8 characters of the key, and the likely mistake",
    remedy:
      "Compare the key with the key of the project. The operator of the gateway can list the projects and their keys (penstock project list), and add a project (penstock project add).",
  },
  project_disabled: {
    status: 401,
    title: "The project is disabled",
    when: "the project is disabled",
    remedy: "Ask the operator of the gateway to enable the project (penstock project enable).",
  },
  not_found: {
    status: 404,
    title: "Path not found",
    when: "no endpoint and no posthog-js script has this path",
    remedy:
      "Send events to /capture/ or /batch/. The detail names the path as received and, if there is one, a similar path.",
  },
  method_not_allowed: {
    status: 405,
    title: "Method not allowed",
    when: "the path does not support this method. The Allow header lists the supported methods",
    remedy: "Use a method that the Allow header lists.",
  },
  body_too_large: {
    status: 413,
    title: "The body is too large",
    when: "the body exceeds PENSTOCK_BODY_BYTES_MAX, or twice the burst of the project's quota",
    remedy: "Send fewer events per request. The detail states the size of the body and the limit.",
  },
  inflated_too_large: {
    status: 413,
    title: "The body is too large after decompression",
    when: "the decompressed body exceeds PENSTOCK_INFLATED_BYTES_MAX. Beyond 8 MiB, the ratio of decompressed to compressed size is also limited to 1,032, which only repeated events reach. If the first 4 KiB contain no known api_key, the limit of the ratio is 200",
    remedy: "Send fewer events per request, and put api_key before batch.",
  },
  too_many_events: {
    status: 413,
    title: "The request has too many events",
    when: "the request has more events than PENSTOCK_REQUEST_EVENTS_MAX or more than twice the burst of the project's quota",
    remedy: "Send fewer events per request. The detail states the number of events and the limit.",
  },
  expands_too_far: {
    status: 413,
    title: "The body expands too far",
    when: `the events need over ${expansionText} more than PENSTOCK_EXPANSION_MAX times the bytes received. Only repeated events compress this well`,
    remedy: "Send fewer repeated events per request.",
  },
  event_too_large: {
    status: 413,
    title: "The event is too large to store",
    when: "the record of the event exceeds the maximum message size of the store",
    remedy: "Send less data in one event. The detail states the size of the record and the limit.",
  },
  unsupported_encoding: {
    status: 415,
    title: "The content encoding is not supported",
    when: "Content-Encoding names several codings, or a coding other than gzip, deflate, br and zstd. The gateway ignores the header if the body is readable without decompression",
    remedy: "Use gzip, deflate, br or zstd, or send the body uncompressed.",
  },
  rate_limited: {
    status: 429,
    title: "The project is over its quota",
    when: "the project exceeds its quota. Nothing of the request is stored. The detail names the quota",
    remedy:
      "Retry after the seconds in Retry-After. The operator of the gateway can raise the quota (penstock project limit).",
  },
  overloaded: {
    status: 503,
    title: "The gateway is overloaded",
    when: "the budget of bytes in flight is used up. Or the request timed out while it waited for earlier large bodies to be decompressed, converted or scanned. Or the body arrives in too many small chunks, or there is not enough memory to scan it",
    remedy:
      "Retry after the seconds in Retry-After. The detail names the cause. If the error persists, raise PENSTOCK_INFLIGHT_BYTES_MAX or add a gateway.",
  },
  unavailable: {
    status: 503,
    title: "The store is unavailable",
    when: "JetStream is unreachable or accepts no events. A request of up to 256 KiB first waits for JetStream for PENSTOCK_REQUEST_TIMEOUT_MS. Other causes: the stream is missing; its configuration would not retain acknowledged events; the project registry may have lost the key; two projects have the same key",
    remedy:
      "Retry after the seconds in Retry-After, which grow with the outage. If the error persists, ask the operator of the gateway to check /readyz on the admin port.",
  },
  store_full: {
    status: 503,
    title: "The store is full",
    when: "the stream is full. Or only its last tenth is free, and the project has already used its share of this reserve",
    remedy:
      "Retry after the seconds in Retry-After. The operator of the gateway can make room (PENSTOCK_STREAM_BYTES_MAX).",
  },
  project_full: {
    status: 503,
    title: "The project has filled its share of the store",
    when: `the project has filled its share of a stream. Or its events expand to more than PENSTOCK_EXPANSION_MAX times the bytes received, and the excess is more than ${expansionText} per minute. Other projects are not affected`,
    remedy:
      "Retry after the seconds in Retry-After. The operator of the gateway can raise the share of the project (penstock project limit --stream-share, PENSTOCK_PROJECT_SHARE). For bodies that expand far, the operator can raise PENSTOCK_EXPANSION_MAX.",
  },
  upstream_unavailable: {
    status: 503,
    title: "The upstream is unavailable",
    when: "the gateway forwards the request to PENSTOCK_UPSTREAM_URL, because it is not an event. The upstream is unreachable, fails or has too many requests in flight, and no cached answer exists. Events are still stored",
    remedy:
      "Retry after the seconds in Retry-After. SDKs keep using the flags that they have. If the error persists, ask the operator of the gateway to check penstock_passed_requests_total.",
  },
  draining: {
    status: 503,
    title: "The gateway is shutting down",
    when: "the gateway is shutting down",
    remedy: "Retry. Another gateway accepts the request, or this gateway after its restart.",
  },
  timeout: {
    status: 503,
    title: "The request timed out",
    when: "the store did not acknowledge in time, so it is unknown whether the events are stored. Or the gateway did not finish a large body in time, so only its first events are stored. Or the request timed out before any event was stored. The detail names the case",
    remedy:
      "Retry the unchanged request after the seconds in Retry-After, which grow with the outage. For two minutes the same gateway process recognizes the events and stores them once. After that, or on another gateway, readers deduplicate by project_id, uuid, event and distinct_id.",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

export const itemErrorCodes = [
  "invalid_properties",
  "event_name_too_long",
  "distinct_id_too_long",
  "too_deep",
  "number_too_long",
  "event_too_large",
  "unreadable_event",
] as const satisfies readonly ErrorCode[];
export type ItemErrorCode = (typeof itemErrorCodes)[number];

/**
 * An expected failure of a whole request. Problems are returned and never thrown. The client
 * receives `detail`.
 */
export interface Problem {
  readonly code: ErrorCode;
  readonly detail: string;
  /** A part of the request. It must never be logged. */
  readonly excerpt?: string;
  readonly errors?: readonly {
    readonly index: number;
    readonly code: string;
    readonly detail: string;
  }[];
  readonly errorsTotal?: number;
  readonly allow?: string;
  readonly retryAfterMs?: number;
}

export const firstProject =
  "`penstock project add my-project` (in a clone `./penstock project add my-project`)";
