// What HTTP and the intake exchange: a request, its body, and its answer.

import type { ClientWarningOrigin } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { ProjectMeter } from "../projects/project.ts";

/** The public endpoints, as a bounded metrics label. */
export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

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
  /**
   * The client's address, whether addresses are recorded or not: it tells clients apart, and is
   * neither stored nor logged.
   */
  readonly senderAddress: string;
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
  /**
   * Takes bytes of the budget of bytes in flight until the request is answered, or returns false if
   * there is no room for them.
   */
  hold(bytes: number): boolean;
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
