// The interface between HTTP and the intake: a request, its body, and its answer.

import type { ClientWarningOrigin } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { ProjectMeter } from "../projects/project.ts";

/** The public endpoints, as a bounded metrics label. */
export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

/** An item of `errors` or `warnings` in a 200. `index` counts from 0 in the request's batch. */
export interface ItemNote {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

/** The result of a request whose events are all either stored or dropped. */
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
 * Data from a body's first bytes, before it is scanned. All except `meter` is for order and queues
 * only, not for answers: the scan may find other values.
 */
export interface BodyHint {
  /** Undefined: no key was seen, or its project does not exist or is disabled. */
  readonly projectId: string | undefined;
  /** Undefined: the lane was not seen. */
  readonly lane: Lane | undefined;
  /** The meter of that project, if no other key in the body can have precedence. */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * Peeks at the part of a body that has arrived: at its first bytes, and at its last if it is whole.
 * Takes some microseconds at most, and never throws. `apiKey` is a key from a header; with it, keys
 * in the body are ignored.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * One HTTP request after its body is complete, as seen by the intake. One of the two answers may be
 * called, once, at any later time; if the client has disconnected, it is only counted. Owned by
 * http/.
 */
export interface Exchange extends ClientWarningOrigin {
  /** Set only for a request of the newer protocol. */
  readonly v1?: V1Request | undefined;
  /** Wall clock, milliseconds since the epoch, when the request's head arrived. */
  readonly receivedAtMs: number;
  /** When the answer becomes 503 `timeout`, in milliseconds of the monotonic clock. */
  readonly deadlineMs: number;
  /** The client's address as text, or "" if addresses are not recorded. */
  readonly clientAddress: string;
  /**
   * The client's address, even if addresses are not recorded. It identifies clients, and is neither
   * stored nor logged.
   */
  readonly senderAddress: string;
  /** Bytes of the body as received. */
  readonly bytesArrived: number;
  /**
   * When the client sent this by its own clock, from the query: milliseconds since the epoch, from
   * 2020 on. NaN if the query has no time, infinity if it has an invalid one.
   */
  readonly querySentAtMs: number;
  /** Whether the request's endpoint treats an object without `event` as an $identify. */
  readonly isEngage: boolean;
  /**
   * Set for bodies that arrived in pieces or were inflated on the pool. Undefined for others,
   * because scanning one costs less than queueing it.
   */
  readonly hint: BodyHint | undefined;
  /** The project of the request, set by the intake once it is known; "" until then. */
  projectId: string;
  /** The lane of its events, set by the intake once the body is read. */
  lane?: Lane | undefined;
  /**
   * The SDK that sent the request, set by the intake before it refuses the request, if the body
   * names one; "" until then.
   */
  library: string;
  /**
   * Takes bytes of the budget of bytes in flight until the request is answered, or returns false if
   * there is no room for them.
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
   * Used instead of `Exchange.answerStored`. `text` is JSON. `hasRetry`: the client should retry
   * some of the events.
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
 * Processes one body. Undefined: the intake is done with it. It fails only because of bugs, never
 * because of client data.
 */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;
