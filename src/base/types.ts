// The types that cross folders: what one stage hands to the next. There is no runtime code here.
// Which folder may import which is held by test/tidy.test.ts; app/ alone wires the parts.

import type { ClientWarningOrigin } from "./client-warning.ts";
import type { ErrorCode, Problem } from "./errors.ts";

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
 * What an operator lets a project send to each gateway process. A rate that is absent has no limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Bytes of bodies, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * After a pause so many seconds' worth may come at once, or what an SDK sends at once, if that is
   * more.
   */
  readonly burstSeconds: number;
}

/** What a request costs its project, and what of its quota that has taken: filled in by `admit`. */
export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** 0 where there was no limit. */
  eventsTaken: number;
  bytesTaken: number;
}

/** In what a request is more than its project's quota lets through at once, ever. */
export interface Excess {
  readonly what: "events" | "bytes";
  /** The limit it is about. */
  readonly perSecond: number;
  /** What a request may come to under it. */
  readonly requestMax: number;
}

/**
 * Holds what a project sends to this process against its quota, and counts what becomes of it. No
 * call waits or throws.
 */
export interface ProjectMeter {
  /**
   * Once a request. 0: it is within the quota, and counts against it. Else it is not, and counts
   * as refused: so many milliseconds from now there is room.
   */
  admit(cost: RequestCost): number;
  /**
   * Which rate it was that a request was over which `admit` has just refused: of two, the one that
   * has to be waited for longer.
   */
  rateHit(cost: RequestCost): Pick<Excess, "what" | "perSecond">;
  /**
   * For a request of which far more would be stored than was sent: whether it may be, all the same.
   * Takes so many bytes out of what the project has for such ones.
   */
  takesExpansion(bytes: number): boolean;
  /**
   * What of a request is more than the project's quota lets through at once, ever. To be asked
   * before `admit`.
   */
  exceeds(cost: RequestCost): Excess | undefined;
  /**
   * At most once for a request that `admit` let through: it ended in a 503, and is sent again.
   * `kept` of its events are stored all the same, or may be, and keep their cost; that of the
   * others is there again.
   */
  giveBack(cost: RequestCost, kept: number): void;
  /**
   * Events of frames that were stored, not of duplicates, whatever their request was answered, and
   * the bytes of their lines.
   */
  countStored(events: number, bytes: number): void;
  /** Events of frames that were sent and not acknowledged by the deadline: stored or not. */
  countUnknown(events: number): void;
  /**
   * Events left out, and events in error, of a request that ended in a 200 or a 4xx. They cost the
   * bytes of their request, but no events.
   */
  countDropped(events: number, cost: RequestCost): void;
}

/** A project as the hot path has it. The meter outlives changes of the entry. */
export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The registry as the hot path sees it: one Map read, whatever NATS is doing. */
export interface ProjectLookup {
  /** The one project that has the key, if there is exactly one. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * Why a key that `byKey` does not know cannot be called unknown now: the registry is not read,
   * may lack projects, or knows the key of more than one project. In words for the client.
   * Undefined: no project has it.
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

/** What a request came to, when every one of its events is stored or was put aside. */
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
 * What a body's first bytes say of it, before it is scanned. It is good for order and queues, not
 * for answers: the scan may find something else.
 */
export interface BodyHint {
  /** Undefined: no key seen, or one of no project that is switched on. */
  readonly projectId: string | undefined;
  /** Undefined: not seen. */
  readonly lane: Lane | undefined;
}

/**
 * Peeks at what has come of a body: at its first bytes, and at its last if it is whole. Takes some
 * microseconds at most, and never throws. `apiKey`: the key that came in a header, where none in
 * the body means anything.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * One HTTP request after its body is whole, as the intake sees it. Either answer may be called
 * once, at any later time; after the client has gone they only count. Owned by http/.
 */
export interface Exchange extends ClientWarningOrigin {
  /** Only of a request of the newer protocol. */
  readonly v1?: V1Request | undefined;
  /** Wall clock, milliseconds since the epoch, when the request's head arrived. */
  readonly receivedAtMs: number;
  /** Monotonic clock, milliseconds: past it the answer is 503 `timeout`. */
  readonly deadlineMs: number;
  /** Text form, or "" where addresses are not recorded. */
  readonly clientAddress: string;
  /** Bytes of the body as it came over the wire. */
  readonly bytesArrived: number;
  /**
   * When the client sent this by its own clock, as the query says: milliseconds since the epoch,
   * from 2020 on. NaN where the query does not say, an infinity where it says what is no time.
   */
  readonly querySentAtMs: number;
  /** Sent to where an object without `event` says who somebody is. */
  readonly isEngage: boolean;
  /**
   * Known of bodies that came in pieces or were inflated on the pool; undefined for others, which a
   * scan costs less than the queue.
   */
  readonly hint: BodyHint | undefined;
  /** Whose it is, told by the intake when it knows; "" until then. */
  projectId: string;
  /**
   * Which SDK made it, told by the intake where it is to be refused and the body says so; "" until
   * then.
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
  /** As `Authorization: Bearer` has it, else `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  /**
   * In the place of `Exchange.answerStored`. The text is JSON; with `hasRetry` the client is to
   * send some of the events again.
   */
  answerResults(text: Buffer, hasRetry: boolean): void;
}

/** A body in memory that is somebody else's as soon as the intake returns. */
export interface BorrowedBody {
  readonly memory: "borrowed";
  readonly bytes: Buffer;
}

/** A body in memory that is the intake's until the promise that it returns has settled. */
export interface OwnedBody {
  readonly memory: "owned";
  readonly bytes: Buffer;
}

/** One whole, inflated body. */
export type WholeBody = BorrowedBody | OwnedBody;

/**
 * Takes one body. Undefined: it is done with it. Fails only for bugs, never for what a client sent.
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
   * Whether a request that holds or announces so many bytes in all is a large one; small ones keep
   * some room of their own.
   */
  isLarge(requestBytes: number): boolean;
  /**
   * Takes the bytes and answers true, or takes nothing and answers false when they do not fit.
   * `requestBytes` is what the request holds with them or, if that is more, announces.
   */
  tryTake(bytes: number, requestBytes: number): boolean;
  /** What would have to be released for that: 0 or less when they fit. */
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
  /** Takes back the lines that no waiter has joined with. */
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
 * Hears once each time it joined a frame, at its own deadline at the latest. `code` says why, for
 * `refused` and `unknown`; `events` and `bytes` are its part of the frame: plain numbers, so that
 * nothing is made for a request. Must not throw.
 */
export interface FrameWaiter {
  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
  ): void;
}

/** How much of a stream each project may fill. Neither call waits or throws. */
export interface ProjectShares {
  /** Undefined while the project may add to its stream. */
  refusalOf(lane: Lane, projectId: string): Problem | undefined;
  /**
   * So many bytes more of a large request are in the publisher's hands; less than 0: so many are
   * not any more, whatever became of them.
   */
  addUnderWay(lane: Lane, projectId: string, bytes: number): void;
  /** Lines of the project were stored. */
  stored(lane: Lane, projectId: string, bytes: number): void;
}

/**
 * Group commit towards JetStream. All calls are synchronous; the outcome comes through the waiter.
 */
export interface Publisher {
  /**
   * Undefined when events can be taken now, else the code to refuse with (`unavailable`,
   * `store_full`, `draining`).
   */
  refusal(): ErrorCode | undefined;
  /**
   * Undefined when the stream that the project's events go to is fit for them, else why it is not.
   */
  refusalOf(lane: Lane, projectId: string): Problem | undefined;
  /** Largest record that stream takes, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** Largest frame, in bytes of payload. */
  readonly frameBytesMax: number;
  /**
   * The open frame that takes the project's lines on the lane, with room for at least `bytes` more
   * (bytes <= frameBytesMax). It may take those of other projects too, so a line must say whose it
   * is.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Declares the lines appended since the last call as this waiter's; the frame leaves by the rules
   * of group commit.
   */
  join(frame: FrameSink, waiter: FrameWaiter, deadlineMs: number): void;
  /**
   * A frame of the caller's own, with room for `bytes` (may exceed frameBytesMax for one large
   * record).
   */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Submits an own frame under a message id that is the same when the client sends the same body
   * again, or under "" for one of this submission alone.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  /** Gives an own frame back unused. */
  discard(frame: FrameSink): void;
}
