// The closed table of all errors that a client can be told: status, title, what has come about, and
// what to do. docs/reference/errors.md is generated from it, and /docs/errors shows it. No other
// file makes up an error code.

import { expansionText } from "./expansion.ts";

export interface ErrorRow {
  readonly status: 400 | 401 | 404 | 405 | 413 | 415 | 429 | 503;
  readonly title: string;
  /** What has come about; shown in the documents and by /docs/errors. */
  readonly when: string;
  /** What the receiver of this answer can do. */
  readonly remedy: string;
}

export const errorTable = {
  empty_body: {
    status: 400,
    title: "The body is empty",
    when: "the body holds nothing but white space, or a GET comes without data",
    remedy: "Send the event or the batch in the body of the request, as JSON.",
  },
  invalid_framing: {
    status: 400,
    title: "The body's length or chunks are not as they may be",
    when: "Content-Length, Transfer-Encoding or Host is doubled or empty, the first two are both there, the coding is not chunked, or the body comes in chunks of a few bytes. The connection is closed. What of this the HTTP library finds first, it answers 400 with a page of its own",
    remedy:
      "Let a common HTTP library or proxy write Content-Length, Transfer-Encoding and Host, each once. Behind a proxy, look for a header that it adds a second time.",
  },
  invalid_encoding: {
    status: 400,
    title: "The body is not in the encoding it claims",
    when: "the body does not decompress, or is compressed twice, or is not in the base64 or lz64 it claims; or it is not UTF-8, and no JSON object either once what is malformed is replaced, or has more than a million malformed places",
    remedy:
      "Send UTF-8, compressed once, in the coding that Content-Encoding names. The detail says at which byte it fails, and what the bytes look like.",
  },
  invalid_json: {
    status: 400,
    title: "The body is not valid JSON",
    when: "the body is not JSON; the detail says where it goes wrong and how, and shows some characters around that place, never a key",
    remedy:
      "Look at the place that the detail names: it says what is wrong there and shows a few characters around it. Write the body with a JSON library rather than by hand.",
  },
  invalid_header: {
    status: 400,
    title: "A header says something else than it should",
    when: "a header of the newer protocol is there and does not say what it should",
    remedy: "Write the header that the detail names as the newer protocol asks.",
  },
  invalid_payload: {
    status: 400,
    title: "The body is not an event or a batch",
    when: "the body is neither an event nor a batch; the detail names the field",
    remedy:
      'Send one event, as {"api_key": ..., "event": ..., "distinct_id": ...}, or a batch, as {"api_key": ..., "batch": [...]}. The detail names the field.',
  },
  invalid_properties: {
    status: 400,
    title: "properties is not an object",
    when: "properties is not an object, null or an empty array",
    remedy: "Make properties an object, encoded once, or leave it out.",
  },
  event_name_too_long: {
    status: 400,
    title: "The event's name is too long",
    when: "in the newer protocol, an event's name of more than 200 characters; only as the detail of a drop",
    remedy:
      "Send a name of 200 characters at most, and what differs from event to event in properties.",
  },
  distinct_id_too_long: {
    status: 400,
    title: "The event's distinct id is too long",
    when: "in the newer protocol, a distinct id of more than 400 characters; only as the detail of a drop",
    remedy: "Send an id of 400 characters at most.",
  },
  too_deep: {
    status: 400,
    title: "The event is nested too deeply",
    when: "an event whose objects and arrays are more than 100 deep",
    remedy: "Flatten the event, or send the deep part as text.",
  },
  number_too_long: {
    status: 400,
    title: "A number has too many digits",
    when: "an event with a number of more than 400 digits",
    remedy: "Send the number as text.",
  },
  unreadable_event: {
    status: 400,
    title: "The gateway fails at this event",
    when: "the event shows up a fault of the gateway, which logs it; its neighbours are stored",
    remedy: "Report it, with the event if you can. Sending it again gives the same answer.",
  },
  missing_api_key: {
    status: 401,
    title: "No API key was sent",
    when: "no key was sent, or one that is not a string; in an array, no event has one",
    remedy:
      "Put the key of the project into api_key, beside event or batch. The detail names a member that looks like it, if there is one.",
  },
  unknown_api_key: {
    status: 401,
    title: "The API key is not known",
    when: "no project has this key, or the events of an array have more than one; the detail says how the key begins (8 characters at most), how long it is, and what looks wrong with it",
    remedy:
      "Compare the key with the project's: the detail says how it begins, how long it is and what looks wrong with it. Whoever runs this gateway lists the projects and their keys with penstock project list, and adds the first one with penstock project add.",
  },
  project_disabled: {
    status: 401,
    title: "The project is switched off",
    when: "the project is switched off",
    remedy: "Ask whoever runs this gateway to switch the project on (penstock project enable).",
  },
  not_found: {
    status: 404,
    title: "There is nothing at this path",
    when: "there is no such path, or no such script; the detail names the path, and one that is near",
    remedy:
      "Send events to /capture/ or /batch/. The detail names the path as it came, and one that is near.",
  },
  method_not_allowed: {
    status: 405,
    title: "This path does not take this method",
    when: "the path takes other methods than this one, which Allow names",
    remedy: "Use a method that the Allow header names.",
  },
  body_too_large: {
    status: 413,
    title: "The body is too large",
    when: "the body has more bytes than PENSTOCK_BODY_BYTES_MAX, or than two bursts of the project's quota",
    remedy:
      "Send fewer events at a time. The detail says how large the body is and how large it may be.",
  },
  inflated_too_large: {
    status: 413,
    title: "The body is too large after decompression",
    when: "the body has more bytes after decompression than PENSTOCK_INFLATED_BYTES_MAX; or than 8 MiB and 1,032 times the compressed ones, which equal events alone come to (200 times, where the first 4 KiB show no known api_key: put it before batch)",
    remedy: "Send fewer events at a time, and put api_key before batch.",
  },
  too_many_events: {
    status: 413,
    title: "The request holds too many events",
    when: "the request has more events than PENSTOCK_REQUEST_EVENTS_MAX, or than two bursts of the project's quota",
    remedy:
      "Send fewer events at a time. The detail says how many there are and how many there may be.",
  },
  expands_too_far: {
    status: 413,
    title: "Too much would be stored for what was sent",
    when: `more than PENSTOCK_EXPANSION_MAX times the bytes that were sent would be stored, and ${expansionText} beyond that; only equal events compress so far`,
    remedy:
      "Send events that differ, or fewer of them at a time: nothing but equal ones compresses so far.",
  },
  event_too_large: {
    status: 413,
    title: "The event is too large to be stored",
    when: "the event is larger than the store takes",
    remedy:
      "Send less in one event: the detail says what its record takes and what the store takes.",
  },
  unsupported_encoding: {
    status: 415,
    title: "The content encoding is not supported",
    when: "Content-Encoding names more than one coding, or one that is not gzip, deflate, br or zstd and without which the body cannot be read",
    remedy: "Use one of gzip, deflate, br and zstd, or send the body as it is.",
  },
  rate_limited: {
    status: 429,
    title: "The project is over its quota",
    when: "the project is over the quota that was set for it; nothing of the request is stored; the detail names the quota",
    remedy:
      "Wait for the seconds that Retry-After says, and send it again. The detail names the quota; whoever runs this gateway can raise it (penstock project limit).",
  },
  overloaded: {
    status: 503,
    title: "Too much is in flight",
    when: "the budget of bytes in flight is full; or so many large or compressed bodies came before this one that its time was over while it waited; or it comes in too many small chunks at once; or there is not enough memory to scan it",
    remedy:
      "Wait for the seconds that Retry-After says, and send it again. The detail says which of these it was. If it lasts, the gateway needs more memory for bodies (PENSTOCK_INFLIGHT_BYTES_MAX) or company.",
  },
  unavailable: {
    status: 503,
    title: "Events cannot be stored right now",
    when: "JetStream cannot be reached, or takes no more events; a request of up to 256 KiB has waited for it as long as PENSTOCK_REQUEST_TIMEOUT_MS. Or the stream is missing or would not keep what a 200 promises; the project registry may lack the key, or more than one project claims it",
    remedy:
      "Wait for the seconds that Retry-After says, which grow with the outage, and send it again. If it lasts, whoever runs this gateway looks at /readyz on the admin port.",
  },
  store_full: {
    status: 503,
    title: "The store is full",
    when: "the stream is full; or it is full but for its last tenth, and the project has added its part of that",
    remedy:
      "Wait for the seconds that Retry-After says, and send it again. Whoever runs this gateway makes room: PENSTOCK_STREAM_BYTES_MAX.",
  },
  project_full: {
    status: 503,
    title: "The project has filled its share of the store",
    when: `the project has filled its share of a stream, or the ${expansionText} a minute that it may store beyond PENSTOCK_EXPANSION_MAX times the bytes that were sent; others are stored`,
    remedy:
      "Wait for the seconds that Retry-After says, and send it again. The operator of this gateway can give the project a larger share (penstock project limit --stream-share, PENSTOCK_PROJECT_SHARE); for bodies that expand far, PENSTOCK_EXPANSION_MAX.",
  },
  upstream_unavailable: {
    status: 503,
    title: "The upstream does not answer",
    when: "what was asked for is no event and is the upstream's to answer (PENSTOCK_UPSTREAM_URL): it is away or in trouble, too much is on its way to it, and no answer of it is kept for this request; events are stored as ever",
    remedy:
      "Wait for the seconds that Retry-After says, and ask again. SDKs go on with the flags that they have. Whoever runs this gateway looks at penstock_passed_requests_total.",
  },
  draining: {
    status: 503,
    title: "This gateway is shutting down",
    when: "this gateway is shutting down",
    remedy: "Send it again: another gateway, or this one after its restart, takes it.",
  },
  timeout: {
    status: 503,
    title: "The store did not acknowledge in time",
    when: "the store did not acknowledge in time, so nobody knows whether it is stored; or the time was over before anything was stored, as the detail says",
    remedy:
      "Wait for the seconds that Retry-After says, which grow with the outage, and send it again unchanged. For two minutes the gateway process that answered knows the events again, and stores them once. Later, or elsewhere, their uuids tell what is stored twice.",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** The error codes that an item of a batch can get. */
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

/** An expected failure of a whole request: a value, never thrown. `detail` goes to the client. */
export interface Problem {
  readonly code: ErrorCode;
  readonly detail: string;
  /**
   * Some characters of what was sent, for its sender. They go into the answer, and nowhere else.
   */
  readonly excerpt?: string;
  /** Which items were at fault, where the request was a batch. */
  readonly errors?: readonly {
    readonly index: number;
    readonly code: string;
    readonly detail: string;
  }[];
  readonly errorsTotal?: number;
  /** The methods that the path allows, where they are not those of the endpoints. */
  readonly allow?: string;
  /** After how many milliseconds it is worth trying again, where that is known. */
  readonly retryAfterMs?: number;
}
