// The public types of the package: options, stored events, frames and notices. No runtime code.

import type { ConnectionOptions } from "@nats-io/nats-core";
import type { Lane } from "../../platform/base/lane.ts";

export interface ConsumeOptions {
  /**
   * The connection options, as for `connect` of @nats-io/transport-node. A function is called
   * before every connection, so that a changed address or token takes effect.
   */
  readonly nats: ConnectionOptions | (() => ConnectionOptions | Promise<ConnectionOptions>);
  /**
   * The name of the durable consumers, under which each stream stores the position of this reader.
   */
  readonly durable: string;
  /** The first part of the stream and subject names; `penstock` by default. */
  readonly prefix?: string | undefined;
  /** The projects to read; all by default. */
  readonly projects?: readonly string[] | undefined;
  /** The lanes to read; both by default. */
  readonly lanes?: readonly Lane[] | undefined;
  /** Maximum number of unacknowledged frames of a stream; 64 by default. */
  readonly maxAckPending?: number | undefined;
  /**
   * Approximate maximum number of bytes of frames in memory; 64 MiB by default. Each stream may
   * always have one frame.
   */
  readonly maxBytes?: number | undefined;
  /**
   * Maximum time in ms after which JetStream redelivers the frames of a program that has died;
   * 30,000 by default.
   */
  readonly ackWaitMs?: number | undefined;
  /**
   * Time in ms after which a frame that is neither acknowledged nor reported as being worked on is
   * delivered again; 300,000 by default.
   */
  readonly processingTimeoutMs?: number | undefined;
  /**
   * Deduplication by `uuid`, `event` and `distinct_id`: events that were delivered within the
   * window are skipped.
   */
  readonly deduplication?: DeduplicationOptions | undefined;
  /**
   * Receives everything that a reader should know. An error that it throws ends the iteration.
   * Default: `console.warn`.
   */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
}

export interface DeduplicationOptions {
  /** Maximum number of uuids that are remembered; 200,000 by default; 0: none. */
  readonly maxUuids?: number | undefined;
  /** How long uuids are remembered, in ms; 600,000 by default. */
  readonly windowMs?: number | undefined;
}

/** A record: an event as Penstock stores it. */
export interface StoredEvent {
  readonly uuid: string;
  readonly project_id: string;
  readonly event: string;
  readonly distinct_id: string;
  /** UTC, milliseconds. */
  readonly timestamp: string;
  readonly timestamp_sent?: string;
  readonly received_at: string;
  readonly sent_at?: string;
  readonly ip?: string;
  readonly kind: EventKind;
  readonly person_profile: boolean;
  readonly historical: boolean;
  /** A number that does not fit a double has its digits only in the line. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
  readonly $unset?: readonly string[];
  /**
   * Values that were sent but not stored, by name: `timestamp`, `uuid`, `offset`, `sent_at`,
   * `distinct_id`, `$set`, `$set_once`, `$unset`, `$groups`, `$group_set` and `$group_unset`.
   */
  readonly replaced?: Readonly<Record<string, unknown>>;
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
  /** The sequence of the message in the stream. */
  readonly sequence: number;
  readonly storedAt: Date;
  /** The events of the selected projects, without duplicates; at least one. */
  readonly events: readonly StoredEvent[];
  /** The stored JSON text of each event, by the same index. */
  readonly lines: readonly string[];
  /** Number of events skipped because they had been delivered before. */
  readonly duplicates: number;
  /** The frame was, or may have been, delivered before. */
  readonly redelivered: boolean;
  /**
   * Marks all its events as done: the frame is not delivered again. If it skipped events of a frame
   * that is still being worked on, JetStream receives the acknowledgement only with that frame's.
   * Until then, a program that asks for more frames than it may hold can get this one again.
   */
  ack(): void;
  /** Delivers this frame and all later unacknowledged frames of its stream again, in order. */
  nak(): void;
  /** Reports that work continues: `processingTimeoutMs` starts again. */
  working(): void;
}

export interface EventConsumer extends AsyncIterableIterator<Frame> {
  /**
   * Delivers no further frame. Delivered frames can still be acknowledged for up to `timeoutMs`;
   * then the connection is closed, and the promise is fulfilled. The next reader gets the frames
   * without an acknowledgement.
   */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** `sequence`, `from` and `to` are sequences of the stream. */
export type Notice =
  | { readonly type: "connected"; readonly server: string }
  /** Connecting is retried for ever. */
  | { readonly type: "disconnected"; readonly reason: string }
  /** The stream had no consumer of this name: reading starts at its first message. */
  | { readonly type: "consumer_created"; readonly stream: string; readonly sequence: number }
  /** The consumer was deleted; reading continues at `sequence`. */
  | { readonly type: "consumer_recreated"; readonly stream: string; readonly sequence: number }
  /** The stream does not exist. The reader waits for it. */
  | { readonly type: "stream_missing"; readonly stream: string }
  /** The name now belongs to another stream; it is read from `sequence` on. */
  | {
      readonly type: "stream_recreated";
      readonly stream: string;
      readonly lastRead: number;
      readonly sequence: number;
    }
  /** The stream has lost messages that were read. Its new messages are read from `from` on. */
  | {
      readonly type: "stream_truncated";
      readonly stream: string;
      readonly lastRead: number;
      readonly from: number;
    }
  /** Messages left the stream before they were read: at most this range, of all projects. */
  | {
      readonly type: "messages_expired";
      readonly stream: string;
      readonly from: number;
      readonly to: number;
    }
  /**
   * Lines of a frame that are not events, for one reason. They are skipped; the events of the frame
   * are delivered.
   */
  | {
      readonly type: "unreadable_line";
      readonly stream: string;
      readonly sequence: number;
      /** Number of the first line, counted from 1. */
      readonly line: number;
      /** Number of lines of the frame that are not events for this reason. */
      readonly lines: number;
      readonly reason: string;
      /** The text of the first line. */
      readonly text: string;
    }
  /** A frame was not acknowledged in time and is delivered again. */
  | { readonly type: "processing_timed_out"; readonly stream: string; readonly sequence: number }
  /** Another error prevents reading; it is retried. */
  | { readonly type: "trouble"; readonly stream: string | undefined; readonly reason: string };

export type NoticeType = Notice["type"];
