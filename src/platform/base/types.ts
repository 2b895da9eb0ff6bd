// The types that cross folders: what one stage hands to the next. There is no runtime code here.
// Which folder may import which is held by test/tidy.test.ts; app/ alone wires the parts.

import type { ClientWarningOrigin } from "./client-warning.ts";
import type { ErrorCode, Problem } from "./errors.ts";
import type { SentWithRuns } from "./sent-with.ts";

/**
 * Where an event is stored: `live` for what is happening, `historical` for imports, kept in order.
 */
export type Lane = "live" | "historical";

/** The public endpoints, as a bounded metrics label. */
export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

/** A project of the registry. Replaced, never mutated, when its registry entry changes. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
}

/**
 * What an operator allows a project: what it may send to each gateway process, and how much of a
 * stream it may fill. A rate that is absent has no limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Bytes of bodies, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * After a pause, the amount of this many seconds may come at once, or as much as an SDK sends at
   * once if that is more.
   */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Absent: that of the settings. */
  readonly streamShare?: number | undefined;
}

/** What a request costs its project. */
export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to be stored beyond a multiple of those sent; mostly 0. Set before `take`. */
  expansion: number;
}

/** Why a request takes nothing of its project's limits, and is refused. */
export interface MeterRefusal {
  /** `expansion` is what the project may store a minute of bytes beyond a multiple of those sent. */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the project has room; Infinity if it never has room for the request. */
  readonly waitMs: number;
  /** The rate that the limit sets. */
  readonly perSecond: number;
  /** The largest request that this rate ever lets through at once. */
  readonly requestMax: number;
}

/** What a request has taken of its project's limits. */
export interface Taken {
  /**
   * Gives back, once, the cost of the events that will be sent again: of all but `kept`, which are
   * stored or may be, or have no retry.
   */
  giveBack(kept: number): void;
  /**
   * Counts events left out or in error, of a request that ended in a 200 or a 4xx. They cost the
   * bytes of their request, but no events, and no expansion, since nothing of them is stored.
   */
  countDropped(events: number): void;
}

/**
 * Limits what a project sends to this process, and counts what becomes of it. No call waits or
 * throws.
 */
export interface ProjectMeter {
  /** To be called once for each request. A refusal for the rate of the quota is counted. */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * Why no request is let in for a while, however small: the one that asks counts as refused, with
   * none of its events. Undefined: nothing is taken or counted.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /**
   * Counts events of stored frames, duplicates aside, and the bytes of their lines, whatever the
   * request was answered.
   */
  countStored(events: number, bytes: number): void;
  /** Counts events of frames that were sent and had no PubAck by the deadline: stored or not. */
  countUnknown(events: number): void;
}

/** A project as the hot path has it. The meter stays the same when the registry entry changes. */
export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The registry as the hot path sees it: one Map read, whatever NATS is doing. */
export interface ProjectLookup {
  /** No project is known at all, so that no key can be right. */
  readonly hasNone: boolean;
  /** The one project that has the key, if there is exactly one. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * The reason why a key that `byKey` does not know cannot be called unknown now, in words for the
   * client: the registry is not read, may lack projects, or has the key in several projects.
   * Undefined: no project has the key.
   */
  refusalOf(key: string): string | undefined;
}

/**
 * One item of a 200 answer's `errors` or `warnings`. `index` counts from 0 in the request's batch.
 */
export interface ItemNote {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

/** The result of a request of which every event is stored or was put aside. */
export interface IntakeReport {
  accepted: number;
  dropped: number;
  /** The first few; `errorsTotal` and `warningsTotal` count them all. */
  errors: ItemNote[];
  errorsTotal: number;
  warnings: ItemNote[];
  warningsTotal: number;
}

/**
 * What a body's first bytes say of it, before it is scanned. All but `meter` is good for order and
 * queues, not for answers: the scan may find something else.
 */
export interface BodyHint {
  /** Undefined: no key was seen, or the key of no project that is switched on. */
  readonly projectId: string | undefined;
  /** Undefined: the lane was not seen. */
  readonly lane: Lane | undefined;
  /** That project's, where no other key of the body can count for more. */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * Peeks at the part of a body that has come: at its first bytes, and at its last if it is whole.
 * Takes some microseconds at most, and never throws. `apiKey` is a key from a header; with it, keys
 * in the body mean nothing.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * One HTTP request after its body is whole, as the intake sees it. One of the two answers may be
 * called, once, at any later time; if the client has gone, it is only counted. Owned by http/.
 */
export interface Exchange extends ClientWarningOrigin {
  /** Set only for a request of the newer protocol. */
  readonly v1?: V1Request | undefined;
  /** Wall clock, milliseconds since the epoch, when the request's head arrived. */
  readonly receivedAtMs: number;
  /** When the answer becomes 503 `timeout`, in milliseconds of the monotonic clock. */
  readonly deadlineMs: number;
  /** The client's address as text, or "" where addresses are not recorded. */
  readonly clientAddress: string;
  /** Bytes of the body as it came over the wire. */
  readonly bytesArrived: number;
  /**
   * When the client sent this by its own clock, as the query says: milliseconds since the epoch,
   * from 2020 on. NaN where the query does not say, an infinity where it says what is no time.
   */
  readonly querySentAtMs: number;
  /** Whether the request came to an endpoint at which an object without `event` is an $identify. */
  readonly isEngage: boolean;
  /**
   * Set for bodies that came in pieces or were inflated on the pool. Undefined for others: to scan
   * one costs less than to queue it.
   */
  readonly hint: BodyHint | undefined;
  /** The project of the request, set by the intake when it knows; "" until then. */
  projectId: string;
  /** The lane of its events, set by the intake once the body is read. */
  lane?: Lane | undefined;
  /**
   * The SDK that made the request, set by the intake if it is to refuse the request and the body
   * names one; "" until then.
   */
  library: string;
  answerStored(report: IntakeReport): void;
  answerProblem(problem: Problem): void;
}

/**
 * What a request of the newer protocol (v1) has beside its body: its headers, "" for those that did
 * not come, and an answer for each event.
 */
export interface V1Request {
  /** The key from `Authorization: Bearer`, else from `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  /**
   * Used instead of `Exchange.answerStored`. `text` is JSON. `hasRetry`: the client is to send some
   * of the events again.
   */
  answerResults(text: Buffer, hasRetry: boolean): void;
}

/** A body in memory that the intake may use only until it returns. */
interface BorrowedBody {
  readonly memory: "borrowed";
  readonly bytes: Buffer;
}

/** A body in memory that the intake may use until its promise has settled. */
export interface OwnedBody {
  readonly memory: "owned";
  readonly bytes: Buffer;
}

/** One whole, inflated body. */
export type WholeBody = BorrowedBody | OwnedBody;

/**
 * Takes one body. Undefined: the intake is done with it. It fails only for bugs, never for what a
 * client sent.
 */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;

/**
 * The budget of bytes in flight: bodies in hand and lines not yet acknowledged, of the whole
 * process.
 */
export interface Admission {
  readonly bytes: number;
  readonly bytesMax: number;
  /**
   * Whether a request that holds or announces this many bytes in all is large. Some room is
   * reserved for small ones.
   */
  isLarge(requestBytes: number): boolean;
  /**
   * Takes the bytes and returns true, or takes nothing and returns false when they do not fit.
   * `requestBytes` is what the request holds with them or, if that is more, announces.
   */
  tryTake(bytes: number, requestBytes: number): boolean;
  /** How many bytes would have to be released before `tryTake` succeeds; 0 or less: none. */
  lacking(bytes: number, requestBytes: number): number;
  /** Takes bytes that can no longer be refused (lines of a body already admitted). */
  take(bytes: number): void;
  release(bytes: number): void;
}

/**
 * An open or submitted frame. Lines are written to `buffer` from `length` on, and then committed.
 * The publisher replaces `buffer` when it grows the frame: read it anew after `sharedFrame`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** The lines of `events` more events stand in `buffer`, from `length` up to `end`. */
  commit(end: number, events: number): void;
  /** Removes the lines that no waiter has joined with yet. */
  rollback(): void;
}

/**
 * What became of a frame.
 * - `stored`: acknowledged, new. `duplicate`: acknowledged, the stream had it from a request
 *   before.
 * - `refused`: certainly not stored.
 * - `unknown`: the deadline passed after it was sent; it may be stored or not. Not a failure, not a
 *   success.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * Is told once for each time it joined a frame, at its own deadline at the latest. `code` says why,
 * for `refused` and `unknown`. `events` and `bytes` are its part of the frame, and `messageBytes` its
 * part of what the message takes in the stream: plain numbers, so that no object is made for a
 * request. Must not throw.
 */
export interface FrameWaiter {
  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void;
}

/** A request that joins shared frames. */
export interface RequestWaiter extends FrameWaiter {
  /** The waiter will be told of one frame more. */
  expectFrame(): void;
  /**
   * Calls back at the end of the request. `isStored`: its client may take all its events for stored,
   * and does not send it again.
   */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/** How much of a stream each project may fill. No call waits or throws. */
export interface ProjectShares {
  /** Undefined while the project may add to its stream. */
  refusalOf(lane: Lane, projectId: string): Problem | undefined;
  /**
   * Counts `bytes` more of a large request that the publisher holds. Less than 0: it no longer
   * holds them, whatever became of them.
   */
  addUnderWay(lane: Lane, projectId: string, bytes: number): void;
  /** Counts bytes of messages that were stored, or if not `isSure` may be stored. */
  stored(lane: Lane, projectId: string, bytes: number, isSure: boolean): void;
}

/**
 * Group commit towards JetStream. All calls are synchronous; the outcome comes through the waiter.
 */
export interface Publisher {
  /**
   * Undefined when events can be taken now, else the code to refuse them with (`unavailable`,
   * `store_full`, `draining`). While the store is away, a small request is taken and waits for it.
   * Without `requestBytes` the request counts as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /**
   * Undefined when the stream of the project's events is fit for them, else why it is not. A small
   * request also waits for a stream that acknowledges nothing.
   */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  /** The name of the stream of the project's events. */
  streamOf(lane: Lane, projectId: string): string;
  /** The largest record that this stream takes, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** The largest frame, in bytes of payload. */
  readonly frameBytesMax: number;
  /**
   * The open frame for the project's lines on the lane, with room for at least `bytes` more (bytes
   * <= frameBytesMax). It may hold lines of other projects too, so each line must name its project.
   * Lines that no waiter has joined with yet are in it as well: they stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * The lines appended since the last call are this waiter's. Group commit sends the frame. With
   * `uuidless` some of their events came without a uuid. If such an event is in another frame
   * already, because its request timed out, its line is taken out, and the waiter is told of that
   * frame as well.
   */
  join(
    frame: FrameSink,
    waiter: RequestWaiter,
    deadlineMs: number,
    uuidless?: { readonly projectId: string; readonly runs: SentWithRuns },
  ): void;
  /**
   * A frame of the caller's own, with room for `bytes` (may exceed frameBytesMax for one large
   * record).
   */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Submits an own frame. Its message id is the same when the client sends the same body again, or
   * "" for an id that only this submission has.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  /** Gives an own frame back unused. */
  discard(frame: FrameSink): void;
}
