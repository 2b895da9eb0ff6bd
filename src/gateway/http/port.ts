// The interface between HTTP and the intake: a request, its body, and its answer.

import type { ClientWarningOrigin } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { ProjectMeter } from "../projects/project.ts";

export type Route = "capture" | "batch" | "e" | "i_v0_e" | "track" | "engage" | "v1";

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
  errors: ItemNote[];
  errorsTotal: number;
  warnings: ItemNote[];
  warningsTotal: number;
}

/**
 * The hint affects only order and queues, never answers, because the scan may find other values.
 * The exception is `meter`.
 */
export interface BodyHint {
  /** Undefined if no key was found, or if its project is missing or disabled. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  /** Set only if no other key in the body can have precedence. */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * `isWhole` means that the last bytes are searched too. Takes microseconds and never throws.
 * `apiKey` is the key of a header, which has precedence.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * The intake calls exactly one answer method, at any later time. If the client has disconnected,
 * the answer is only counted.
 */
export interface Exchange extends ClientWarningOrigin {
  readonly v1?: V1Request | undefined;
  /** When the head arrived, in milliseconds since the epoch. */
  readonly receivedAtMs: number;
  /** By the monotonic clock. At this time, the answer becomes 503 `timeout`. */
  readonly deadlineMs: number;
  readonly clientAddress: string;
  /** The client's address, even if addresses are not recorded. It is neither stored nor logged. */
  readonly senderAddress: string;
  readonly bytesArrived: number;
  /** Whether the User-Agent is a known bot. Determined at the first use. */
  readonly isBot?: boolean;
  readonly querySentAtMs: number;
  readonly isEngage: boolean;
  /** Whether the events are rejected events that are sent again, which are still in quarantine. */
  readonly isReplay: boolean;
  readonly hint: BodyHint | undefined;
  /** "" until the intake has determined the project. */
  projectId: string;
  lane?: Lane | undefined;
  readonly span?: RequestSpan | undefined;
  /** Set before the intake rejects the request. */
  library: string;
  hold(bytes: number): boolean;
  answerStored(report: IntakeReport): void;
  answerProblem(problem: Problem): void;
}

/** A request of the newer protocol (v1). An absent header is "". */
export interface V1Request {
  /** The key from `Authorization: Bearer`, else from `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  answerResults(text: Buffer, hasRetry: boolean): void;
}

/** The intake may use the memory only until it returns. */
interface BorrowedBody {
  readonly memory: "borrowed";
  readonly bytes: Buffer;
}

/** The intake may use the memory until its promise is fulfilled. */
export interface OwnedBody {
  readonly memory: "owned";
  readonly bytes: Buffer;
}

export type WholeBody = BorrowedBody | OwnedBody;

/** Returns undefined if the body is already processed. Throws only because of bugs. */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;
