// Writes answers: 200 texts, problem details (RFC 9457), CORS headers. Makes no decisions about
// requests and counts nothing. Writes each response in one cork, which results in one system call.

import { STATUS_CODES } from "node:http";
import {
  type ErrorCode,
  type ErrorRow,
  errorTable,
  type Problem,
} from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { problemType } from "./pages/errors-page.ts";
import { JSON_TYPE } from "./pages/fixed-answer.ts";
import type { IntakeReport } from "./port.ts";
import type { HttpResponse } from "./uws.ts";

const PROBLEM_TYPE = "application/problem+json";
const RETRY_AFTER_SECONDS_MAX = 60;
/**
 * Number of consecutive seconds from which Retry-After is chosen at random, beginning with the
 * first useful second. The spread keeps clients that were refused together from retrying together.
 */
const RETRY_AFTER_SPREAD = 5;
/**
 * Codes whose Retry-After depends on how long the stream has stored nothing (`AwayMs`): it is 1 to
 * about 1.5 times that duration, up to the maximum. While the duration is 0, Retry-After is 1 or 2
 * seconds; for `overloaded` it is as for other codes. SDKs on phones drop all their events at the
 * fourth consecutive failure. With a constant Retry-After, they would lose them in every outage that
 * lasts four retries.
 */
const storeAwayCodes: ReadonlySet<ErrorCode> = new Set([
  "unavailable",
  "timeout",
  "store_full",
  "overloaded",
]);
/**
 * Maximum number of consecutive seconds over which Retry-After spreads the retries after a long
 * outage.
 */
const AWAY_SPREAD_MAX = 21;
const PREFLIGHT_SECONDS = "86400";
export const allowedMethods = "GET, POST, OPTIONS";
const v1Methods = "POST, OPTIONS";

/** Returns the methods that paths for events accept. */
export function methodsAt(isV1: boolean): string {
  return isV1 ? v1Methods : allowedMethods;
}

const statusLines = {
  200: "200 OK",
  204: "204 No Content",
  304: "304 Not Modified",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  404: "404 Not Found",
  405: "405 Method Not Allowed",
  413: "413 Content Too Large",
  415: "415 Unsupported Media Type",
  429: "429 Too Many Requests",
  503: "503 Service Unavailable",
} as const satisfies Record<200 | 204 | 304 | ErrorRow["status"], string>;

/** Returns the status line of any status, for example of an upstream's answer. */
export function statusLineOf(status: number): string {
  const known: Readonly<Record<number, string>> = statusLines;
  return known[status] ?? `${status} ${STATUS_CODES[status] ?? "Unknown"}`;
}

/**
 * State of a connection after its answer. With `to be closed` the answer is complete, but uWS does
 * not close the connection: the caller must close it after the client has had time to do so.
 */
export type Written = "done" | "to be closed";

/**
 * The lane and project of a request, as far as they are known. If the lane is known, so is the
 * project.
 */
interface StoreNeeds {
  readonly lane: Lane | undefined;
  readonly projectId: string;
}

/**
 * Returns the number of milliseconds for which the stream of the project's events has stored
 * nothing, or 0 while the stream stores. If the lane is not known yet, the result is for all
 * streams together.
 */
export type AwayMs = (lane: StoreNeeds["lane"], projectId: string) => number;

interface ReplyOptions extends StoreNeeds {
  /** The request's Origin header, "" for none. CORS headers mirror it. */
  readonly origin: string;
  /** Whether the connection closes after the answer. */
  readonly close: boolean;
  /** Whether the request was a HEAD: the answer has headers only. */
  readonly headOnly: boolean;
  /** Whether problems are written in the form of the newer protocol. */
  readonly isV1: boolean;
}

interface Preflight {
  readonly origin: string;
  /** The headers that the browser intends to send. */
  readonly requestedHeaders: string;
  /** The methods that the path accepts. */
  readonly allow: string;
}

const noOptions: ReplyOptions = {
  ...{ origin: "", close: false, headOnly: false, isV1: false },
  ...{ lane: undefined, projectId: "" },
};

interface EventResultsText {
  readonly text: Buffer;
  readonly hasRetry: boolean;
}

/** Writes answers. One writer serves the whole server, so the usual answers need no closures. */
export class ReplyWriter {
  readonly #random: () => number;
  readonly #awayMs: AwayMs;
  #response: HttpResponse | undefined;
  #code: ErrorCode | undefined;
  #allow = allowedMethods;
  #retryAfterMs = 0;
  #body = "";
  /**
   * The last problem answered, cached with its text because most requests of a flood are refused
   * for the same reason.
   */
  #problem: Problem | undefined;
  #problemText = "";
  #options: ReplyOptions = noOptions;
  readonly #write = (): void => this.#writeCorked();

  /**
   * Creates a writer. `random` returns a number from 0 to below 1, which spreads the retries of
   * clients that were refused together.
   */
  constructor({ random, awayMs }: { random: () => number; awayMs: AwayMs }) {
    this.#random = random;
    this.#awayMs = awayMs;
  }

  stored(response: HttpResponse, report: IntakeReport, options: ReplyOptions): void {
    this.#send(response, undefined, storedText(report), options);
  }

  /** Answers with the text of the results per event. */
  results(
    response: HttpResponse,
    { text, hasRetry }: EventResultsText,
    options: ReplyOptions,
  ): void {
    response.cork(() => {
      this.writeResultsHead(response, hasRetry, options);
      response.end(text, options.close);
    });
  }

  /** Answers 204 to a client that reads no body: a beacon, which a page sends as it closes. */
  nothing(response: HttpResponse, { origin, close }: ReplyOptions): Written {
    response.cork(() => {
      response.writeStatus(statusLines[204]);
      if (origin !== "") writeCorsHeaders(response, origin);
      // A 204 has no Content-Length (RFC 9110, 8.6).
      if (close) endHead(response);
      else response.endWithoutBody();
    });
    return close ? "to be closed" : "done";
  }

  problem(response: HttpResponse, problem: Problem, options: ReplyOptions): Written {
    this.#retryAfterMs = problem.retryAfterMs ?? 0;
    this.#allow = problem.allow ?? methodsAt(options.isV1);
    if (options.isV1) {
      return this.#send(response, problem.code, v1ProblemText(problem), options);
    }
    if (!hasSameText(problem, this.#problem)) {
      this.#problem = problem;
      this.#problemText = problemText(problem);
    }
    return this.#send(response, problem.code, this.#problemText, options);
  }

  /** Answers a preflight. Ends the connection, because the end of a preflight is not declared. */
  preflight(response: HttpResponse, { origin, requestedHeaders, allow }: Preflight): void {
    response.writeHeader("Allow", allow);
    if (origin !== "") {
      writeCorsHeaders(response, origin);
      // For paths outside the newer protocol, both GET and POST are allowed here, even if the path
      // accepts only one of them. The browser then sends the request, and the page can read the
      // 405, which names the right methods.
      response.writeHeader(
        "Access-Control-Allow-Methods",
        allow === v1Methods ? allow : allowedMethods,
      );
      if (requestedHeaders !== "")
        response.writeHeader("Access-Control-Allow-Headers", requestedHeaders);
      response.writeHeader("Access-Control-Max-Age", PREFLIGHT_SECONDS);
    }
    response.end("", true);
  }

  #send(
    response: HttpResponse,
    code: ErrorCode | undefined,
    body: string,
    options: ReplyOptions,
  ): Written {
    this.#response = response;
    this.#code = code;
    this.#body = body;
    this.#options = options;
    response.cork(this.#write);
    this.#response = undefined;
    return options.headOnly && options.close ? "to be closed" : "done";
  }

  #writeCorked(): void {
    const response = this.#response;
    if (response === undefined) return;
    const { origin, close, headOnly } = this.#options;
    if (this.#code === undefined) {
      response.writeHeader("Content-Type", JSON_TYPE);
    } else {
      this.#writeProblemHead(response, this.#code, this.#options.isV1);
    }
    if (origin !== "") writeCorsHeaders(response, origin);
    if (headOnly) {
      // The length is written as a header, because `endWithoutBody(length)` makes uWS wait for a
      // body, which the answer to a HEAD does not have.
      response.writeHeader("Content-Length", String(Buffer.byteLength(this.#body)));
      if (close) endHead(response);
      else response.endWithoutBody();
    } else {
      response.end(this.#body, close);
    }
  }

  #writeProblemHead(response: HttpResponse, code: ErrorCode, isV1: boolean): void {
    const { status } = errorTable[code];
    response
      .writeStatus(statusLines[status])
      .writeHeader("Content-Type", isV1 ? JSON_TYPE : PROBLEM_TYPE);
    if (status === 405) response.writeHeader("Allow", this.#allow);
    if (status === 429 || status === 503)
      response.writeHeader("Retry-After", this.#retryAfter(code));
  }

  /** Writes status and headers of an answer with results per event. */
  writeResultsHead(
    response: HttpResponse,
    hasRetry: boolean,
    { origin, lane, projectId }: Pick<ReplyOptions, "origin"> & StoreNeeds,
  ): void {
    response.writeHeader("Content-Type", JSON_TYPE);
    if (hasRetry)
      response.writeHeader("Retry-After", this.#retryAfterAway(this.#awayMs(lane, projectId)));
    if (origin !== "") writeCorsHeaders(response, origin);
  }

  #retryAfter(code: ErrorCode): string {
    const { lane, projectId } = this.#options;
    const awayMs = storeAwayCodes.has(code) ? this.#awayMs(lane, projectId) : 0;
    if (storeAwayCodes.has(code) && (code !== "overloaded" || awayMs > 0))
      return this.#retryAfterAway(Math.max(this.#retryAfterMs, awayMs));
    return this.#spread(this.#retryAfterMs, RETRY_AFTER_SPREAD);
  }

  #retryAfterAway(ms: number): string {
    return this.#spread(ms, Math.max(2, Math.floor(ms / 2_000) + 1));
  }

  /**
   * Returns one of `spread` consecutive seconds, beginning with the first that is not before `ms`.
   */
  #spread(ms: number, spread: number): string {
    const spreadMax = Math.min(spread, AWAY_SPREAD_MAX);
    const first = Math.min(
      Math.max(1, Math.ceil(ms / 1_000)),
      RETRY_AFTER_SECONDS_MAX - spreadMax + 1,
    );
    return String(first + Math.floor(this.#random() * spreadMax));
  }
}

/**
 * Ends an answer without a body on a connection that must end. uWS would write a length of 0 when
 * it closes the connection. A 204 or 304 must not have a length, and the length of an answer to a
 * HEAD differs. So this function ends the head with a line break in the last header, after the Date
 * that uWS would add. For uWS the answer has not ended: a further request on the connection makes
 * uWS end it; otherwise the caller must close the connection.
 */
export function endHead(response: HttpResponse): void {
  response.writeHeader("Date", new Date().toUTCString()).writeHeader("Connection", "close\r\n");
}

/** Writes the headers that let the requesting page read the answer. */
export function writeCorsHeaders(response: HttpResponse, origin: string): void {
  response
    .writeHeader("Access-Control-Allow-Origin", origin)
    .writeHeader("Access-Control-Allow-Credentials", "true")
    .writeHeader("Access-Control-Expose-Headers", "Retry-After")
    .writeHeader("Vary", "Origin, Access-Control-Request-Headers");
}

// Texts end in a line feed, so that a terminal's next output begins on its own line.
const ONE_STORED = '{"status":"Ok","accepted":1,"dropped":0}\n';

function storedText(report: IntakeReport): string {
  const { accepted, dropped, errorsTotal, warningsTotal } = report;
  if (errorsTotal === 0 && warningsTotal === 0) {
    if (accepted === 1 && dropped === 0) return ONE_STORED;
    return `{"status":"Ok","accepted":${accepted},"dropped":${dropped}}\n`;
  }
  // JSON.stringify omits undefined members.
  const text = JSON.stringify({
    status: "Ok",
    accepted,
    dropped,
    errors: errorsTotal > 0 ? report.errors : undefined,
    errors_total: errorsTotal > 0 ? errorsTotal : undefined,
    warnings: warningsTotal > 0 ? report.warnings : undefined,
    warnings_total: warningsTotal > 0 ? warningsTotal : undefined,
  });
  return `${text}\n`;
}

/** Returns whether both problems have the same text. */
function hasSameText(problem: Problem, other: Problem | undefined): boolean {
  return (
    problem.code === other?.code &&
    problem.detail === other.detail &&
    problem.excerpt === other.excerpt &&
    problem.errors === other.errors
  );
}

function v1ProblemText(problem: Problem): string {
  return `${JSON.stringify({ error: problem.code, error_description: detailOf(problem) })}\n`;
}

/**
 * Returns the detail for the sender alone: it includes `excerpt`, which quotes the sender's data.
 */
function detailOf({ detail, excerpt = "" }: Problem): string {
  return excerpt === "" ? detail : `${detail}. Near: ${excerpt}`;
}

function problemText(problem: Problem): string {
  const { code, errors, errorsTotal } = problem;
  const { status, title } = errorTable[code];
  const text = JSON.stringify({
    type: problemType(code),
    title,
    status,
    code,
    detail: detailOf(problem),
    errors,
    errors_total: errors === undefined ? undefined : (errorsTotal ?? errors.length),
  });
  return `${text}\n`;
}
