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
 * What a peek has found in a body. The scan may find other values, so a hint determines only order
 * and queues. Only `meter` can also determine an answer.
 */
export interface BodyHint {
  /** The project of the key. It is undefined if there is no key, or no enabled project for it. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  /**
   * The meter of the project. It is set only if no other key in the body can have precedence over
   * the key that was found.
   */
  readonly meter?: ProjectMeter | undefined;
}

/**
 * Searches a body for its key and lane. If `isWhole` is true, the last bytes are searched too.
 * `apiKey` is the key of a header, which has precedence. A peek takes microseconds and never
 * throws.
 */
export type Peek = (body: Buffer, isWhole: boolean, apiKey?: string) => BodyHint;

/**
 * The intake must call exactly one answer method, now or later. If the client has disconnected, the
 * answer is only counted.
 */
export interface Exchange extends ClientWarningOrigin {
  readonly v1?: V1Request | undefined;
  /** The time at which the head arrived, in milliseconds since the epoch. */
  readonly receivedAtMs: number;
  /** Milliseconds of the monotonic clock. At this time, the gateway answers with 503 `timeout`. */
  readonly deadlineMs: number;
  readonly clientAddress: string;
  /**
   * The address of the client. It is set even if addresses are not recorded, but it is neither
   * stored nor logged.
   */
  readonly senderAddress: string;
  readonly bytesArrived: number;
  /** The User-Agent header, if the rules of any project need it. Else it may be a client's name. */
  readonly userAgent?: string;
  /** Whether the User-Agent is a known bot. Determined at the first use. */
  readonly isBot?: boolean;
  readonly querySentAtMs: number;
  readonly isEngage: boolean;
  /** Whether the events are rejected events that are sent again, which are still in quarantine. */
  readonly isReplay: boolean;
  readonly hint: BodyHint | undefined;
  /** The project of the request. It is "" until the intake has determined it. */
  projectId: string;
  lane?: Lane | undefined;
  readonly span?: RequestSpan | undefined;
  /** The name of the SDK. The intake sets it before it rejects the request. */
  library: string;
  hold(bytes: number): boolean;
  answerStored(report: IntakeReport): void;
  answerProblem(problem: Problem): void;
}

/** The headers of a request of the newer protocol (v1). If a header is absent, its value is "". */
export interface V1Request {
  /** The key from `Authorization: Bearer`, or else from `PostHog-Api-Token`. */
  readonly apiKey: string;
  readonly requestId: string;
  readonly attempt: string;
  readonly requestTimestamp: string;
  readonly sdkInfo: string;
  answerResults(text: Buffer, hasRetry: boolean): void;
}

/** The intake may use this memory only until the call returns. */
interface BorrowedBody {
  readonly memory: "borrowed";
  readonly bytes: Buffer;
}

/** The intake may use this memory until its promise is fulfilled. */
export interface OwnedBody {
  readonly memory: "owned";
  readonly bytes: Buffer;
}

export type WholeBody = BorrowedBody | OwnedBody;

/**
 * Processes a body. Returns undefined if the body is already processed when the call returns.
 * Throws only because of bugs.
 */
export type Intake = (exchange: Exchange, body: WholeBody) => Promise<void> | undefined;
