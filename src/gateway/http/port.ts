// The interface between HTTP and the intake: a request, its body, and its answer.

import type { ClientWarningOrigin } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { ProjectMeter } from "../projects/project.ts";

/** The label of a public endpoint in metrics; the set of values is bounded. */
export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

/** An item of `errors` or `warnings` in a 200. `index` counts from 0 in the request's batch. */
export interface ItemNote {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

/** The result of a request, after each of its events is either stored or dropped. */
export interface IntakeReport {
  accepted: number;
  dropped: number;
  /** The first few notes of each kind; `errorsTotal` and `warningsTotal` count all notes. */
  errors: ItemNote[];
  errorsTotal: number;
  warnings: ItemNote[];
  warningsTotal: number;
}

/**
 * Data from a body's first bytes, before the body is scanned. All fields except `meter` may be used
 * for order and queues only, not for answers: the scan may find other values.
 */
export interface BodyHint {
  /**
   * The id of the project of the key that was found; undefined if no key was found, or its project
   * does not exist or is disabled.
   */
  readonly projectId: string | undefined;
  /** The lane of the body's events; undefined if it was not found. */
  readonly lane: Lane | undefined;
  /** The meter of the project; set if no other key in the body can have precedence. */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * Searches the part of a body that has arrived for its key and lane: the first bytes and, if the
 * body is whole, also the last ones. Takes some microseconds at most, and never throws. `apiKey` is
 * a key from a header; if it is set, keys in the body are ignored.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * One HTTP request after its body is complete, as seen by the intake. The intake may call one of
 * the two answer methods, once, at any later time. If the client has disconnected, the answer is
 * only counted. Owned by http/.
 */
export interface Exchange extends ClientWarningOrigin {
  /** The data of a request of the newer protocol; undefined for other requests. */
  readonly v1?: V1Request | undefined;
  /** Time when the request's head arrived, in milliseconds since the epoch. */
  readonly receivedAtMs: number;
  /** Time when the answer becomes 503 `timeout`, in milliseconds of the monotonic clock. */
  readonly deadlineMs: number;
  /** The client's address as text, or "" if addresses are not recorded. */
  readonly clientAddress: string;
  /**
   * The client's address, even if addresses are not recorded. It identifies clients, and is neither
   * stored nor logged.
   */
  readonly senderAddress: string;
  /** Number of bytes of the body as received. */
  readonly bytesArrived: number;
  /**
   * Time of sending by the client's own clock, from the query: milliseconds since the epoch, from
   * 2020 on. NaN if the query has no time; infinity if the time is invalid.
   */
  readonly querySentAtMs: number;
  /** Whether the request's endpoint treats an object without `event` as an $identify. */
  readonly isEngage: boolean;
  /**
   * The data from the first bytes of a body that arrived in pieces or was inflated on the pool.
   * Undefined for other bodies, because to scan such a body takes less time than to queue it.
   */
  readonly hint: BodyHint | undefined;
  /** The project of the request, set by the intake once it is known; "" until then. */
  projectId: string;
  /** The lane of the request's events, set by the intake once the body is read. */
  lane?: Lane | undefined;
  /**
   * The SDK that the body names, set by the intake before it refuses the request; "" until then.
   */
  library: string;
  /**
   * Reserves bytes of the budget of bytes in flight until the request is answered. Returns false if
   * the budget has no room for them.
   */
  hold(bytes: number): boolean;
  answerStored(report: IntakeReport): void;
  answerProblem(problem: Problem): void;
}

/**
 * The additional data of a request of the newer protocol (v1): its headers, "" for absent ones, and
 * an answer with a result per event.
 */
export interface V1Request {
  /** The key from `Authorization: Bearer`, else from `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  /**
   * Answers with a result per event, instead of `Exchange.answerStored`. `text` is JSON.
   * `hasRetry`: whether the client should retry some of the events.
   */
  answerResults(text: Buffer, hasRetry: boolean): void;
}

/** A body in memory that the intake may use only until it returns. */
interface BorrowedBody {
  readonly memory: "borrowed";
  readonly bytes: Buffer;
}

/** A body in memory that the intake may use until its promise is fulfilled. */
export interface OwnedBody {
  readonly memory: "owned";
  readonly bytes: Buffer;
}

/** A complete body without compression. */
export type WholeBody = BorrowedBody | OwnedBody;

/**
 * Processes one body. Returns undefined if the body is processed when the call returns. Fails only
 * because of bugs, never because of client data.
 */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;
