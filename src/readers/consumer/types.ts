import type { ConnectionOptions } from "@nats-io/nats-core";
import type { Lane } from "../../platform/base/lane.ts";

export interface ConsumeOptions {
  /** Options for `connect`, or a function that returns the options before each attempt. */
  readonly nats: ConnectionOptions | (() => ConnectionOptions | Promise<ConnectionOptions>);
  /** Name of the durable consumers. The server stores the read positions under this name. */
  readonly durable: string;
  /** First part of the stream and subject names. Default: `penstock`. */
  readonly prefix?: string | undefined;
  /** Ids of the projects to read. Default: all projects. */
  readonly projects?: readonly string[] | undefined;
  /** Lanes to read. Default: both lanes. */
  readonly lanes?: readonly Lane[] | undefined;
  /** Maximum number of unacknowledged frames of each stream. Default: 64. */
  readonly maxAckPending?: number | undefined;
  /**
   * Approximate maximum size in bytes of all frames in memory. Default: 64 MiB. One frame is always
   * accepted, even if it is larger.
   */
  readonly maxBytes?: number | undefined;
  /** Time in ms after which the frames of a crashed program are redelivered. Default: 30,000. */
  readonly ackWaitMs?: number | undefined;
  /** Time in ms after which an unacknowledged frame is redelivered. Default: 300,000. */
  readonly processingTimeoutMs?: number | undefined;
  /**
   * Options for the deduplication. Events with the same project, `uuid`, `event` and `distinct_id`
   * are delivered once.
   */
  readonly deduplication?: DeduplicationOptions | undefined;
  /** Receives all notices. If it throws or rejects, the iteration ends. Default: `console.warn`. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
}

export interface DeduplicationOptions {
  /** Maximum number of remembered events. Default: 200,000. With 0, deduplication is off. */
  readonly maxUuids?: number | undefined;
  /** Time in ms for which an event is remembered. Default: 600,000. */
  readonly windowMs?: number | undefined;
}

export interface StoredEvent {
  readonly uuid: string;
  readonly project_id: string;
  readonly event: string;
  readonly distinct_id: string;
  /** Time of the event in UTC, as RFC 3339 with milliseconds. */
  readonly timestamp: string;
  readonly timestamp_sent?: string;
  readonly received_at: string;
  readonly sent_at?: string;
  readonly ip?: string;
  /** The version of the project's rules, if they changed the event or its `ip`. */
  readonly rules?: number;
  readonly kind: EventKind;
  readonly person_profile: boolean;
  readonly historical: boolean;
  /** The properties. `JSON.parse` rounds large numbers, but `Frame.lines` contains all digits. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
  readonly $unset?: readonly string[];
  /**
   * The original values of fields that could not be stored as they were sent. The keys are field
   * names, such as `$set`.
   */
  readonly replaced?: Readonly<Record<string, unknown>>;
  /** The `version` of the event's schema, whether the event is `ok`, and its `errors` if not. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export type EventKind =
  | "custom"
  | "pageview"
  | "screen"
  | "identify"
  | "alias"
  | "group_identify"
  | "survey"
  | "set";

/** The events of one JetStream message. They are acknowledged together. */
export interface Frame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly sequence: number;
  readonly storedAt: Date;
  /** The events of the selected projects, without duplicates. The array is never empty. */
  readonly events: readonly StoredEvent[];
  readonly lines: readonly string[];
  /** Number of events that were skipped because they had been delivered before. */
  readonly duplicates: number;
  /** True if the frame may have been delivered before. */
  readonly redelivered: boolean;
  /**
   * W3C trace context of a sampled request in the message, if there is one. It is not validated.
   */
  readonly traceparent: string | undefined;
  /**
   * Acknowledges all events of the frame.
   *
   * If events of the frame were skipped as duplicates, the acknowledgement is sent after the frames
   * with the originals are acknowledged. Until then, this frame may be delivered again, and then
   * includes the skipped events.
   */
  ack(): void;
  /** Requests this frame and all later unacknowledged frames of its stream again, in order. */
  nak(): void;
  /** Reports that the frame is still being processed. This restarts `processingTimeoutMs`. */
  working(): void;
}

export interface EventConsumer extends AsyncIterableIterator<Frame> {
  /**
   * Stops the delivery, waits for acknowledgements for up to `timeoutMs` (default: 30,000), and
   * closes the connection.
   */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** A change or an error that the consumer reports. */
export type Notice =
  | { readonly type: "connected"; readonly server: string }
  | { readonly type: "disconnected"; readonly reason: string }
  | { readonly type: "consumer_created"; readonly stream: string; readonly sequence: number }
  | { readonly type: "consumer_recreated"; readonly stream: string; readonly sequence: number }
  | { readonly type: "stream_missing"; readonly stream: string }
  /** The stream was replaced by a new stream. Reading starts at `sequence` of the new stream. */
  | {
      readonly type: "stream_recreated";
      readonly stream: string;
      readonly lastRead: number;
      readonly sequence: number;
    }
  | {
      readonly type: "stream_truncated";
      readonly stream: string;
      readonly lastRead: number;
      readonly from: number;
    }
  /**
   * Messages were removed from the stream before they were read. The range may include messages of
   * projects that are not selected.
   */
  | {
      readonly type: "messages_expired";
      readonly stream: string;
      readonly from: number;
      readonly to: number;
    }
  /**
   * Some lines of a frame are not events: `lines` lines, of which the first is `line`. All events
   * of the frame are delivered.
   */
  | {
      readonly type: "unreadable_line";
      readonly stream: string;
      readonly sequence: number;
      readonly line: number;
      readonly lines: number;
      readonly reason: string;
      readonly text: string;
    }
  | { readonly type: "processing_timed_out"; readonly stream: string; readonly sequence: number }
  /** Any other error. The consumer retries. If it affects all streams, `stream` is undefined. */
  | { readonly type: "trouble"; readonly stream: string | undefined; readonly reason: string };

export type NoticeType = Notice["type"];

/** Ends the iteration. The options or the version of Penstock must be changed. */
export class ConsumeError extends Error {
  override name = "ConsumeError";
}
