import type { ConnectionOptions } from "@nats-io/nats-core";
import type { Lane } from "../../platform/base/lane.ts";

export interface ConsumeOptions {
  /** Options for `connect`, or a function that returns them before every attempt to connect. */
  readonly nats: ConnectionOptions | (() => ConnectionOptions | Promise<ConnectionOptions>);
  /** Name of the durable consumers. Each stream stores the position under this name. */
  readonly durable: string;
  /** First part of the stream and subject names. Default: `penstock`. */
  readonly prefix?: string | undefined;
  /** Ids of the projects to read. Default: all projects. */
  readonly projects?: readonly string[] | undefined;
  /** Lanes to read. Default: both. */
  readonly lanes?: readonly Lane[] | undefined;
  /** Maximum number of unacknowledged frames of each stream. Default: 64. */
  readonly maxAckPending?: number | undefined;
  /** Approximate maximum bytes of frames in memory. Default: 64 MiB. One frame always fits. */
  readonly maxBytes?: number | undefined;
  /** Time in ms until the frames of a dead program are redelivered. Default: 30,000. */
  readonly ackWaitMs?: number | undefined;
  /** Time in ms until a frame without `ack` or `working` is redelivered. Default: 300,000. */
  readonly processingTimeoutMs?: number | undefined;
  /** Events with the same project, `uuid`, `event` and `distinct_id` are delivered once. */
  readonly deduplication?: DeduplicationOptions | undefined;
  /** Receives all notices. If it throws or rejects, the iteration ends. Default: `console.warn`. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
}

export interface DeduplicationOptions {
  /** Maximum number of remembered events. Default: 200,000. 0 turns deduplication off. */
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
  readonly kind: EventKind;
  readonly person_profile: boolean;
  readonly historical: boolean;
  /** Properties, parsed by `JSON.parse`. Only `Frame.lines` has all digits of large numbers. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
  readonly $unset?: readonly string[];
  /** The sent values of fields that could not be stored as sent, by field name, such as `$set`. */
  readonly replaced?: Readonly<Record<string, unknown>>;
  /** The version of the project's rules, if they changed the event or its `ip`. */
  readonly rules?: number;
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
  /** Events of the selected projects, without duplicates. There is at least one event. */
  readonly events: readonly StoredEvent[];
  readonly lines: readonly string[];
  /** Number of events that were skipped because they had been delivered before. */
  readonly duplicates: number;
  /** Whether the frame may have been delivered before. */
  readonly redelivered: boolean;
  /** W3C trace context of the message, not validated; undefined if no request in it was sampled. */
  readonly traceparent: string | undefined;
  /**
   * Acknowledges all events of the frame.
   *
   * If events were skipped as duplicates, the acknowledgement waits for the frame with the
   * originals. Until then, this frame may be delivered again, with the skipped events.
   */
  ack(): void;
  /** Delivers this frame and all later unacknowledged frames of its stream again, in order. */
  nak(): void;
  /** Reports that work on the frame continues, and restarts `processingTimeoutMs`. */
  working(): void;
}

export interface EventConsumer extends AsyncIterableIterator<Frame> {
  /** Stops the delivery, waits up to `timeoutMs` (30,000) for acknowledgements, and disconnects. */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** A change or an error that a reader reports. */
export type Notice =
  | { readonly type: "connected"; readonly server: string }
  | { readonly type: "disconnected"; readonly reason: string }
  | { readonly type: "consumer_created"; readonly stream: string; readonly sequence: number }
  | { readonly type: "consumer_recreated"; readonly stream: string; readonly sequence: number }
  | { readonly type: "stream_missing"; readonly stream: string }
  /** A new stream has replaced the stream. Reading starts at `sequence` of the new stream. */
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
  /** Messages were removed from the stream unread. The range is an upper bound for all projects. */
  | {
      readonly type: "messages_expired";
      readonly stream: string;
      readonly from: number;
      readonly to: number;
    }
  /** `lines` lines of a frame, from `line` on, are not events. All its events are delivered. */
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
  /** Any other error. The reader retries. If all streams are affected, `stream` is undefined. */
  | { readonly type: "trouble"; readonly stream: string | undefined; readonly reason: string };

export type NoticeType = Notice["type"];

/** An error that ends the iteration, because the options or the version of Penstock must change. */
export class ConsumeError extends Error {
  override name = "ConsumeError";
}
