// What a program that reads events sees: the options, a stored event, a frame of events, and the
// notices. There is no runtime code here.

import type { ConnectionOptions } from "@nats-io/nats-core";
import type { Lane } from "../../platform/base/lane.ts";

export interface ConsumeOptions {
  /**
   * How NATS is reached, as `connect` of @nats-io/transport-node takes it. A function is called
   * before every connection, so that an address or a token that has changed counts.
   */
  readonly nats: ConnectionOptions | (() => ConnectionOptions | Promise<ConnectionOptions>);
  /** The name under which each stream keeps how far this reader has come. */
  readonly durable: string;
  /** What the names of streams and subjects begin with; `penstock` by default. */
  readonly prefix?: string | undefined;
  /** The projects to read; all by default. */
  readonly projects?: readonly string[] | undefined;
  /** The lanes to read; both by default. */
  readonly lanes?: readonly Lane[] | undefined;
  /** How many frames of a stream may be unacknowledged; 64 by default. */
  readonly maxAckPending?: number | undefined;
  /**
   * How many bytes of frames may be in memory, about; 64 MiB by default. Each stream may have one
   * frame in any case.
   */
  readonly maxBytes?: number | undefined;
  /**
   * How long after this program has died JetStream gives what it had in hand to the next one, at
   * the latest; 30,000 by default.
   */
  readonly ackWaitMs?: number | undefined;
  /**
   * A frame that is neither acknowledged nor said to be worked on for so long is delivered again;
   * 300,000 by default.
   */
  readonly processingTimeoutMs?: number | undefined;
  /** The window in which an event that comes again, by its `uuid`, `event` and `distinct_id`, is left out. */
  readonly deduplication?: DeduplicationOptions | undefined;
  /** Told of all that a reader should know. Without it, `console.warn` is. An error thrown ends. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
}

export interface DeduplicationOptions {
  /** How many uuids are remembered; 200,000 by default; 0: none. */
  readonly maxUuids?: number | undefined;
  /** For how long they are; 600,000 by default. */
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
  /** A number that no double holds has its digits only in the line. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
  readonly $unset?: readonly string[];
  /**
   * What was sent and not stored, under its name: of `timestamp`, `uuid`, `offset`, `sent_at`,
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

/** The events of one message of JetStream: what is acknowledged at once. */
export interface Frame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  /** Its sequence in the stream. */
  readonly sequence: number;
  readonly storedAt: Date;
  /** Those of the projects asked for, without duplicates; at least one. */
  readonly events: readonly StoredEvent[];
  /** The JSON text of each event, by the same index, as it is stored. */
  readonly lines: readonly string[];
  /** How many events were left out because they had been delivered before. */
  readonly duplicates: number;
  /** It was, or may have been, delivered before. */
  readonly redelivered: boolean;
  /**
   * All its events are done: it does not come again. Where it left out events of a frame that is
   * still in work, JetStream hears of it when that one is acknowledged, and a program that asks for
   * more than may be in hand may get it again until then.
   */
  ack(): void;
  /** It comes again, and all behind it in its stream that is not acknowledged, in order. */
  nak(): void;
  /** The work on it goes on: `processingTimeoutMs` begins anew. */
  working(): void;
}

export interface EventConsumer extends AsyncIterableIterator<Frame> {
  /**
   * Delivers no further frame. Those delivered can still be acknowledged: for so long at most, and
   * then the connection is closed. Fulfilled when it is. Frames without an acknowledgement come to
   * whoever reads next.
   */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** `sequence`, `from` and `to` are sequences of the stream. */
export type Notice =
  | { readonly type: "connected"; readonly server: string }
  /** Connecting is tried again for ever. */
  | { readonly type: "disconnected"; readonly reason: string }
  /** The stream had no consumer of this name: it is read from its first message on. */
  | { readonly type: "consumer_created"; readonly stream: string; readonly sequence: number }
  /** Somebody deleted the consumer; it goes on from `sequence`. */
  | { readonly type: "consumer_recreated"; readonly stream: string; readonly sequence: number }
  /** The stream is not there. It is waited for. */
  | { readonly type: "stream_missing"; readonly stream: string }
  /** Another stream of that name is there; it is read from `sequence` on. */
  | {
      readonly type: "stream_recreated";
      readonly stream: string;
      readonly lastRead: number;
      readonly sequence: number;
    }
  /** The stream has lost messages that were read. What is new there is read from `from` on. */
  | {
      readonly type: "stream_truncated";
      readonly stream: string;
      readonly lastRead: number;
      readonly from: number;
    }
  /** Messages left the stream before they were read: up to so many, of all projects. */
  | {
      readonly type: "messages_expired";
      readonly stream: string;
      readonly from: number;
      readonly to: number;
    }
  /**
   * Lines of a frame that are not events, for one reason. They are left out; the events of the frame
   * are not.
   */
  | {
      readonly type: "unreadable_line";
      readonly stream: string;
      readonly sequence: number;
      /** The first of them, counted from 1. */
      readonly line: number;
      /** How many lines of the frame are not events for this reason. */
      readonly lines: number;
      readonly reason: string;
      /** The text of the first of them. */
      readonly text: string;
    }
  /** A frame was not acknowledged in time and is delivered again. */
  | { readonly type: "processing_timed_out"; readonly stream: string; readonly sequence: number }
  /** Something else is in the way of reading; it is tried again. */
  | { readonly type: "trouble"; readonly stream: string | undefined; readonly reason: string };

export type NoticeType = Notice["type"];
