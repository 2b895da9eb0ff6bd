// Writes answers: texts with status 200, problem details (RFC 9457), fixed answers and CORS
// headers. Each response is written in one cork, so that it takes one system call.

import { STATUS_CODES } from "node:http";
import {
  type ErrorCode,
  type ErrorRow,
  errorTable,
  type Problem,
} from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { atOnceBytesMax, type LongAnswers, writePiecewise } from "./long-answers.ts";
import type { IntakeReport } from "./port.ts";
import type { HttpResponse } from "./uws.ts";

export const errorsPath = "/docs/errors";
const PROBLEM_TYPE = "application/problem+json";
const RETRY_AFTER_SECONDS_MAX = 60;
/**
 * The maximum random part of Retry-After, in seconds. It distributes the retries of rejected
 * clients over time.
 */
const RETRY_AFTER_SPREAD = 5;
/**
 * For these codes, Retry-After grows with the duration of the outage. This matters because SDKs on
 * phones drop all their events after the fourth failure.
 */
const outageCodes: ReadonlySet<ErrorCode> = new Set([
  "unavailable",
  "timeout",
  "store_full",
  "overloaded",
]);
const OUTAGE_SPREAD_MAX = 21;
const PREFLIGHT_SECONDS = "86400";
export const allowedMethods = "GET, POST, OPTIONS";
const v1Methods = "POST, OPTIONS";

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

function statusLineOf(status: number): string {
  const known: Readonly<Record<number, string>> = statusLines;
  return known[status] ?? `${status} ${STATUS_CODES[status] ?? "Unknown"}`;
}

/** If the result is `to be closed`, the caller must close the connection later. */
export type Written = "done" | "to be closed";

interface StoreNeeds {
  readonly lane: Lane | undefined;
  readonly projectId: string;
}

/**
 * Returns the number of milliseconds for which the stream of the project and lane has stored
 * nothing. Without a lane, it considers all streams.
 */
export type OutageMs = (lane: StoreNeeds["lane"], projectId: string) => number;

interface ReplyOptions extends StoreNeeds {
  readonly origin: string;
  readonly close: boolean;
  readonly headOnly: boolean;
  readonly isV1: boolean;
}

interface Preflight {
  readonly origin: string;
  readonly requestedHeaders: string;
  readonly allow: string;
}

const noOptions: ReplyOptions = {
  origin: "",
  close: false,
  headOnly: false,
  isV1: false,
  lane: undefined,
  projectId: "",
};

/** Each kind of answer has its own method, so that usual answers need no closures. */
export class ReplyWriter {
  readonly #random: () => number;
  readonly #outageMs: OutageMs;
  #response: HttpResponse | undefined;
  #code: ErrorCode | undefined;
  #allow = allowedMethods;
  #retryAfterMs = 0;
  #body = "";
  /** The last problem and its text are cached, because most rejections of a flood are equal. */
  #problem: Problem | undefined;
  #problemText = "";
  #options: ReplyOptions = noOptions;
  readonly #write = (): void => this.#writeCorked();

  constructor({ random, outageMs }: { random: () => number; outageMs: OutageMs }) {
    this.#random = random;
    this.#outageMs = outageMs;
  }

  stored(response: HttpResponse, report: IntakeReport, options: ReplyOptions): void {
    this.#send(response, undefined, storedText(report), options);
  }

  results(
    response: HttpResponse,
    { text, hasRetry }: { text: Buffer; hasRetry: boolean },
    options: ReplyOptions,
  ): void {
    response.cork(() => {
      this.writeResultsHead(response, hasRetry, options);
      response.end(text, options.close);
    });
  }

  nothing(response: HttpResponse, { origin, close }: ReplyOptions): Written {
    response.cork(() => {
      response.writeStatus(statusLines[204]);
      if (origin !== "") writeCorsHeaders(response, origin);
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

  /**
   * Answers a preflight and closes the connection, because the head of a preflight does not state
   * where the request ends.
   */
  preflight(response: HttpResponse, { origin, requestedHeaders, allow }: Preflight): void {
    response.writeHeader("Allow", allow);
    if (origin !== "") {
      writeCorsHeaders(response, origin);
      // GET and POST are both allowed, so that a page can read the 405 with the right method.
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
      // With `endWithoutBody(length)`, uWS would wait for a body.
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

  writeResultsHead(
    response: HttpResponse,
    hasRetry: boolean,
    { origin, lane, projectId }: Pick<ReplyOptions, "origin"> & StoreNeeds,
  ): void {
    response.writeHeader("Content-Type", JSON_TYPE);
    if (hasRetry)
      response.writeHeader("Retry-After", this.#retryAfterOutage(this.#outageMs(lane, projectId)));
    if (origin !== "") writeCorsHeaders(response, origin);
  }

  #retryAfter(code: ErrorCode): string {
    const { lane, projectId } = this.#options;
    const outageMs = outageCodes.has(code) ? this.#outageMs(lane, projectId) : 0;
    if (outageCodes.has(code) && (code !== "overloaded" || outageMs > 0))
      return this.#retryAfterOutage(Math.max(this.#retryAfterMs, outageMs));
    return this.#spread(this.#retryAfterMs, RETRY_AFTER_SPREAD);
  }

  #retryAfterOutage(ms: number): string {
    return this.#spread(ms, Math.max(2, Math.floor(ms / 2_000) + 1));
  }

  #spread(ms: number, spread: number): string {
    const spreadMax = Math.min(spread, OUTAGE_SPREAD_MAX);
    const first = Math.min(
      Math.max(1, Math.ceil(ms / 1_000)),
      RETRY_AFTER_SECONDS_MAX - spreadMax + 1,
    );
    return String(first + Math.floor(this.#random() * spreadMax));
  }
}

/**
 * Ends an answer without a body. The caller must close the connection later. uWS would add a
 * Content-Length of 0, which is wrong for a 204, a 304 and a HEAD. To prevent this, the last header
 * contains the line break that ends the head.
 */
function endHead(response: HttpResponse): void {
  response.writeHeader("Date", new Date().toUTCString()).writeHeader("Connection", "close\r\n");
}

function writeCorsHeaders(response: HttpResponse, origin: string): void {
  response
    .writeHeader("Access-Control-Allow-Origin", origin)
    .writeHeader("Access-Control-Allow-Credentials", "true")
    .writeHeader("Access-Control-Expose-Headers", "Retry-After")
    .writeHeader("Vary", "Origin, Access-Control-Request-Headers");
}

const ONE_STORED = '{"status":"Ok","accepted":1,"dropped":0}\n';

function storedText(report: IntakeReport): string {
  const { accepted, dropped, filtered, errorsTotal, warningsTotal } = report;
  if (errorsTotal === 0 && warningsTotal === 0) {
    if (accepted === 1 && dropped === 0 && filtered === 0) return ONE_STORED;
    const ofRules = filtered === 0 ? "" : `,"filtered":${filtered}`;
    return `{"status":"Ok","accepted":${accepted},"dropped":${dropped}${ofRules}}\n`;
  }
  const text = JSON.stringify({
    status: "Ok",
    accepted,
    dropped,
    filtered: filtered > 0 ? filtered : undefined,
    errors: errorsTotal > 0 ? report.errors : undefined,
    errors_total: errorsTotal > 0 ? errorsTotal : undefined,
    warnings: warningsTotal > 0 ? report.warnings : undefined,
    warnings_total: warningsTotal > 0 ? warningsTotal : undefined,
  });
  return `${text}\n`;
}

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

/** `excerpt` quotes data of the sender, so the detail must be sent only to the sender. */
function detailOf({ detail, excerpt = "" }: Problem): string {
  return excerpt === "" ? detail : `${detail}. Near: ${excerpt}`;
}

function problemText(problem: Problem): string {
  const { code, errors, errorsTotal } = problem;
  const { status, title } = errorTable[code];
  const text = JSON.stringify({
    type: `${errorsPath}#${code}`,
    title,
    status,
    code,
    detail: detailOf(problem),
    errors,
    errors_total: errors === undefined ? undefined : (errorsTotal ?? errors.length),
  });
  return `${text}\n`;
}

export interface FixedAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
  readonly isHeldBy?: "its request" | "its readers";
}

export const JSON_TYPE = "application/json";
export const SCRIPT_TYPE = "text/javascript; charset=utf-8";

export const nosniff = ["X-Content-Type-Options", "nosniff"] as const;

interface FixedAnswerOptions {
  readonly origin: string;
  readonly close: boolean;
  readonly headOnly: boolean;
  readonly long: LongAnswers;
  readonly sent: (mustClose: boolean) => void;
}

export type Writing = Pick<FixedAnswerOptions, "close" | "sent" | "long">;

/**
 * Writes a fixed answer. If the answer is long, returns a function that the caller must call if the
 * client disconnects.
 */
export function writeFixed(
  response: HttpResponse,
  answer: FixedAnswer,
  options: FixedAnswerOptions,
): (() => void) | undefined {
  const { body } = answer;
  const { origin, sent } = options;
  const hasNoBody = answer.status === 204 || answer.status === 304;
  if (typeof body !== "string" && body.length > atOnceBytesMax && !options.headOnly) {
    const piecewise = { writeHead: () => writeHead(response, answer, origin), close: true, sent };
    const { isHeldBy } = answer;
    return isHeldBy === undefined
      ? writePiecewise(response, body, piecewise)
      : options.long.write(response, body, { ...piecewise, isShared: isHeldBy === "its readers" });
  }
  const { close } = options;
  const isHead = hasNoBody || options.headOnly;
  response.cork(() => {
    writeHead(response, answer, origin);
    if (isHead && !hasNoBody)
      response.writeHeader("Content-Length", String(Buffer.byteLength(body)));
    if (!isHead) response.end(body, close);
    else if (close) endHead(response);
    else response.endWithoutBody();
  });
  sent(isHead && close);
  return undefined;
}

function writeHead(response: HttpResponse, { status, headers }: FixedAnswer, origin: string): void {
  response.writeStatus(statusLineOf(status));
  for (const [name, value] of headers) response.writeHeader(name, value);
  if (origin !== "") writeCorsHeaders(response, origin);
  // Without `Vary`, a cache could give this answer to another page, which needs CORS headers.
  else response.writeHeader("Vary", "Origin");
}
