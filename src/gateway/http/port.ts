// The interface between HTTP and the intake: a request, its body, and its answer.

import type { ClientWarningOrigin } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { ProjectMeter } from "../projects/project.ts";

export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

/** A note on an item of the request's batch. `index` counts from 0. */
export interface ItemNote {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

export interface IntakeReport {
  accepted: number;
  dropped: number;
  /** Events that the project's rules dropped, did not sample, or put into quarantine. */
  filtered: number;
  /** The first few errors and warnings. `errorsTotal` and `warningsTotal` count all of them. */
  errors: ItemNote[];
  errorsTotal: number;
  warnings: ItemNote[];
  warningsTotal: number;
}

/**
 * Data from a body's first bytes. Except for `meter`, it may affect only order and queues, never
 * answers, because the scan may find other values.
 */
export interface BodyHint {
  /** The project's id; undefined if no key was found, or if its project is missing or disabled. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  /** The project's meter. Set only if no other key in the body can have precedence. */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * Searches the first bytes of a body for its key and lane. If `isWhole`, searches the last bytes
 * too. Takes microseconds and never throws. `apiKey` is a key from a header, which has precedence.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * A request whose body is complete. The intake calls exactly one answer method, at any later time.
 * If the client has disconnected, the answer is only counted.
 */
export interface Exchange extends ClientWarningOrigin {
  /** The data of a v1 request; undefined for other protocols. */
  readonly v1?: V1Request | undefined;
  /** Time when the head arrived, in milliseconds since the epoch. */
  readonly receivedAtMs: number;
  /** Time when the answer becomes 503 `timeout`, in milliseconds of the monotonic clock. */
  readonly deadlineMs: number;
  /** The client's address; "" if addresses are not recorded. */
  readonly clientAddress: string;
  /** The client's address, even if addresses are not recorded. It is neither stored nor logged. */
  readonly senderAddress: string;
  readonly bytesArrived: number;
  /** Whether the User-Agent is a known bot. Determined at the first use. */
  readonly isBot?: boolean;
  /**
   * The query's time of sending, by the client's clock: milliseconds since the epoch, from 2020 on.
   * NaN if absent; infinity if invalid.
   */
  readonly querySentAtMs: number;
  /** Whether an object without `event` counts as an $identify. */
  readonly isEngage: boolean;
  /** The hint of the body; undefined if the body arrived in one piece and did not wait. */
  readonly hint: BodyHint | undefined;
  /** The project's id. "" until the intake has determined the project. */
  projectId: string;
  lane?: Lane | undefined;
  /** The span of the request; undefined unless the request is sampled. */
  readonly span?: RequestSpan | undefined;
  /** The SDK that the body names. The intake sets it before it rejects the request. */
  library: string;
  /** Reserves bytes of the budget until the answer. Returns false if there are too few. */
  hold(bytes: number): boolean;
  answerStored(report: IntakeReport): void;
  answerProblem(problem: Problem): void;
}

/** A request of the newer protocol (v1): its answer, and its headers. An absent header is "". */
export interface V1Request {
  /** The key from `Authorization: Bearer`, else from `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  /** Answers with a result per event. `hasRetry`: the client should retry some events. */
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

export type WholeBody = BorrowedBody | OwnedBody;

/** Processes a body. Returns undefined if that is already done. Throws only because of bugs. */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;
