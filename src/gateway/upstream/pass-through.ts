// Answers a forwarded request. It tries a fresh cached answer, then the upstream, then an old
// cached answer, and then answers 503. For flags, it always asks the upstream first, and uses a
// cached answer only if the upstream is unavailable.

import { createHash } from "node:crypto";
import type { Problem } from "../../platform/base/errors.ts";
import type { HttpExchange } from "../http/exchange.ts";
import type { LongAnswers } from "../http/long-answers.ts";
import type { WholeBody } from "../http/port.ts";
import type { FixedAnswer } from "../http/reply.ts";
import type { Passed, Routed } from "../http/router.ts";
import type { HttpRequest, HttpResponse } from "../http/uws.ts";
import { AnswerCache, ageMsOf, freshMsOf } from "./answer-cache.ts";
import { flagsQuestion } from "./flags-question.ts";
import { type PassedHead, type PassedKind, type PassedOutcome, passedHead } from "./passed-head.ts";
import { type UpstreamAnswer, UpstreamClient } from "./upstream-client.ts";

export interface PassThroughConfig {
  readonly upstreamUrl: string;
  readonly upstreamTimeoutMs: number;
  readonly upstreamRequestsMax: number;
  readonly upstreamKeptBytesMax: number;
  readonly upstreamKeptAge: number;
}

interface PassThroughOptions {
  readonly config: PassThroughConfig;
  readonly monotonicMs: () => number;
  readonly ended: (kind: PassedKind, outcome: PassedOutcome) => void;
}

interface Asking {
  readonly head: PassedHead;
  /** The body of the request. It must not change until the answer is available. */
  readonly body: Uint8Array;
  readonly gone: AbortSignal;
  readonly hasRoom: boolean;
}

interface SharedAsking {
  readonly head: PassedHead;
  readonly answers: AnswerCache;
  readonly hasCached: boolean;
}

interface Reply {
  readonly outcome: PassedOutcome;
  readonly answer: FixedAnswer | Problem;
}

const unavailable: Problem = {
  code: "upstream_unavailable",
  detail: "The upstream for this request does not answer; events are still stored",
};
const passing = /^(?:_|sent_at|retry_count|ver)=/;
const askedIn = ["accept-encoding", "content-type", "content-encoding"];
const ofShared = /^(?:v|ver|token)=/;
type SharedKind = Extract<PassedKind, "static" | "config">;

export class PassThrough {
  readonly #options: PassThroughOptions;
  readonly #client: UpstreamClient;
  readonly #shared: Readonly<Record<SharedKind, AnswerCache>>;
  readonly #flags: AnswerCache;
  readonly #asked = new Map<string, Promise<UpstreamAnswer | undefined>>();

  constructor(options: PassThroughOptions) {
    const { config, monotonicMs } = options;
    this.#options = options;
    this.#client = new UpstreamClient({
      url: config.upstreamUrl,
      timeoutMs: config.upstreamTimeoutMs,
      monotonicMs,
      requestsMax: config.upstreamRequestsMax,
    });
    const { upstreamKeptBytesMax, upstreamKeptAge: ageMsMax } = config;
    const cacheOf = (share: number): AnswerCache =>
      new AnswerCache({ bytesMax: upstreamKeptBytesMax * share, ageMsMax, monotonicMs });
    this.#shared = { static: cacheOf(1 / 4), config: cacheOf(1 / 4) };
    this.#flags = cacheOf(1 / 2);
  }

  get inflight(): number {
    return this.#client.inflight;
  }

  get keptBytes(): number {
    const { static: scripts, config } = this.#shared;
    return scripts.bytes + config.bytes + this.#flags.bytes;
  }

  /** Never rejects. */
  async answerTo(asking: Asking): Promise<FixedAnswer | Problem> {
    const { kind } = asking.head;
    const { outcome, answer } = isShared(kind)
      ? await this.#answerShared({ ...asking, head: sharedHead(asking.head) }, this.#shared[kind])
      : await this.#answerOwn(asking);
    this.#options.ended(kind, outcome);
    if ("code" in answer) return answer;
    // The bytes of a shared answer count as long as clients read it, because the cache may already
    // have evicted it.
    return { ...answer, isHeldBy: isShared(kind) ? "its readers" : "its request" };
  }

  close(): void {
    this.#client.close();
  }

  async #answerShared({ head, hasRoom }: Asking, answers: AnswerCache): Promise<Reply> {
    const key = sharedKey(head);
    const cached = answers.get(key);
    if (cached?.isFresh === true)
      return { outcome: "fresh", answer: fixedOf(withAge(cached.answer, cached.ageMs), head) };
    const isAsked = hasRoom || this.#asked.has(key);
    const asking = { head, answers, hasCached: cached !== undefined };
    const answer = isAsked ? await this.#askedAnswer(key, asking) : undefined;
    if (answer !== undefined) return { outcome: "passed", answer: fixedOf(answer, head) };
    if (cached === undefined) return { outcome: isAsked ? "failed" : "full", answer: unavailable };
    return { outcome: "kept", answer: fixedOf(aged(cached.answer, cached.ageMs), head) };
  }

  async #askedAnswer(key: string, asking: SharedAsking): Promise<UpstreamAnswer | undefined> {
    const asked = this.#asked.get(key);
    if (asked === undefined) {
      // Other clients may wait for the same answer. So the request to the upstream continues even
      // if its own client disconnects.
      const own = this.#ask(key, asking).finally(() => this.#asked.delete(key));
      this.#asked.set(key, own);
      return await own;
    }
    const answer = await asked;
    if (answer === undefined || isForAll(answer)) return answer;
    // An error such as a 429 is meant for one client, so each client sends its own request.
    return asking.hasCached ? undefined : await this.#ask(key, asking);
  }

  async #ask(key: string, { head, answers }: SharedAsking): Promise<UpstreamAnswer | undefined> {
    const answer = await this.#client.ask(head, noBytes, neverGone);
    if (typeof answer === "string" || answer.status >= 500) return undefined;
    const freshMs = answer.status === 200 ? freshMsOf(answer.headers) : undefined;
    if (freshMs !== undefined) answers.store(key, answer, freshMs);
    return answer;
  }

  async #answerOwn({ head, body, gone }: Asking): Promise<Reply> {
    // The body is parsed only after this request, because it may fail immediately (`full`).
    const answer = await this.#client.ask(head, body, gone);
    if (answer === "gone") return { outcome: "gone", answer: unavailable };
    if (typeof answer !== "string" && answer.status < 500 && answer.status !== 429) {
      const key = answer.status === 200 ? ownKey(head, body) : undefined;
      if (key !== undefined) this.#flags.store(key, answer, 0);
      return { outcome: "passed", answer };
    }
    const key = this.#flags.bytes === 0 ? undefined : ownKey(head, body);
    const cached = key === undefined ? undefined : this.#flags.get(key);
    if (cached !== undefined) return { outcome: "kept", answer: aged(cached.answer, cached.ageMs) };
    if (answer === "full") return { outcome: "full", answer: unavailable };
    if (typeof answer !== "string" && answer.status === 429) return { outcome: "passed", answer };
    return { outcome: "failed", answer: unavailable };
  }
}

function isForAll({ status, headers }: UpstreamAnswer): boolean {
  return status === 404 || (status === 200 && freshMsOf(headers) !== undefined);
}

const noBytes = new Uint8Array(0);
const neverGone = new AbortController().signal;

function isShared(kind: PassedKind): kind is SharedKind {
  return kind === "static" || kind === "config";
}

function sharedHead(head: PassedHead): PassedHead {
  const parameters = head.query.split("&").filter((parameter) => ofShared.test(parameter));
  return { ...head, method: "GET", query: parameters.join("&") };
}

function fixedOf(answer: UpstreamAnswer, { ifNoneMatch }: PassedHead): FixedAnswer {
  const etag = answer.headers.find(([name]) => name === "ETag")?.[1];
  const tags = ifNoneMatch.split(",").map((tag) => weakless(tag.trim()));
  const isThere = etag !== undefined && ifNoneMatch !== "" && tags.includes(weakless(etag));
  if (answer.status !== 200 || !isThere) return answer;
  const headers = answer.headers.filter(([name]) => !name.startsWith("Content-"));
  return { status: 304, headers, body: "" };
}

function weakless(tag: string): string {
  return tag.replace(/^W\//, "");
}

function aged(answer: UpstreamAnswer, ageMs: number): UpstreamAnswer {
  return uncached(withAge(answer, ageMs));
}

function withAge({ status, headers, body }: UpstreamAnswer, ageMs: number): UpstreamAnswer {
  const age = Math.floor((ageMsOf(headers) + ageMs) / 1_000);
  const others = headers.filter(([name]) => name !== "Age");
  return { status, headers: [...others, ["Age", String(age)]], body };
}

/**
 * The configuration may depend on the page that requests it. So the page is part of the cache key.
 */
function sharedKey({ kind, path, query, headers }: PassedHead): string {
  const codings = headers["accept-encoding"] ?? "";
  const page = kind === "config" ? `${headers["origin"] ?? ""} ${pageOf(headers["referer"])}` : "";
  return [codings, page, path, query].join("\n");
}

function pageOf(referer: string | undefined): string {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : "";
}

function ownKey(head: PassedHead, body: Uint8Array): string | undefined {
  const question = head.kind === "flags" ? flagsQuestion(body) : undefined;
  if (question === undefined) return undefined;
  const { method, path, query, headers } = head;
  const [packing, asked, rest] = question;
  const values = askedIn.map((name) => headers[name] ?? "");
  const before = [method, path, parametersOf(query), ...values, packing, asked.length, ""];
  const hash = createHash("sha256").update(before.join("\n"));
  return hash.update(asked).update(rest).digest("base64");
}

function parametersOf(query: string): string {
  return query
    .split("&")
    .filter((parameter) => !passing.test(parameter))
    .join("&");
}

type Begin = (response: HttpResponse, request: HttpRequest, routed: Routed) => HttpExchange;
type Pass = (response: HttpResponse, request: HttpRequest, passed: Passed) => void;

/**
 * Forwarded requests begin in the same way as all other requests, so that the same limits apply.
 */
export function passerOf(
  passThrough: PassThrough,
  begin: Begin,
  long: Pick<LongAnswers, "holdTooMuch">,
): Pass {
  return (response, request, passed) => {
    const exchange = begin(response, request, passed);
    const { body } = exchange;
    const { label: kind, passedPath: path, passedQuery: query } = passed;
    const head = passedHead(request, exchange.clientAddress, { kind, path, query });
    body.queryData = "";
    body.taker = (_, whole) => {
      const left = new AbortController();
      body.cancelWork = () => left.abort();
      const hasRoom = !long.holdTooMuch;
      const asking = { head, body: ownOf(whole), gone: left.signal, hasRoom };
      return passThrough.answerTo(asking).then((answer) => {
        body.cancelWork = undefined;
        const hasFailed = "code" in answer && passed.own !== undefined;
        exchange.answer(hasFailed ? uncached(passed.own) : answer);
      });
    };
  };
}

function uncached<Answer extends FixedAnswer>(answer: Answer): Answer {
  const others = answer.headers.filter(([name]) => name !== "Cache-Control");
  return { ...answer, headers: [...others, ["Cache-Control", "no-cache"]] };
}

function ownOf({ memory, bytes }: WholeBody): Uint8Array {
  return memory === "owned" ? bytes : Uint8Array.from(bytes);
}
