// The story of one request that is passed on: a fresh answer that is kept, else the upstream's,
// else a kept one that is older, else 503. Flags are always asked for; their kept answer is that of
// the same question, and is given only while the upstream is away.

import { createHash } from "node:crypto";
import type { Problem } from "../../platform/base/errors.ts";
import type { FixedAnswer } from "../http/pages/fixed-answer.ts";
import { flagsQuestion } from "./flags-question.ts";
import { ageMsOf, freshMsOf, KeptAnswers } from "./kept-answers.ts";
import type { PassedKind, PassedOutcome } from "./labels.ts";
import type { PassedHead } from "./passed-head.ts";
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

/** The request that waits for the answer. */
interface Asking {
  readonly head: PassedHead;
  /** In memory that stays as it is until the answer is there. */
  readonly body: Uint8Array;
  readonly gone: AbortSignal;
  /** False: clients that read slowly hold so much that no more is asked for that many ask for. */
  readonly hasRoom: boolean;
}

/** A question for what many ask for. */
interface SharedAsking {
  readonly head: PassedHead;
  /** Where its answer is kept. */
  readonly answers: KeptAnswers;
  readonly hasKept: boolean;
}

interface Said {
  readonly outcome: PassedOutcome;
  readonly answer: FixedAnswer | Problem;
}

const unavailable: Problem = {
  code: "upstream_unavailable",
  detail: "The upstream that answers this does not answer; events are stored as ever",
};
/** Parameters that differ with each request, and not by what is asked. */
const passing = /^(?:_|sent_at|retry_count|ver)=/;
/** Headers by which the same bytes are another question, or its answer is another one. */
const askedIn = ["accept-encoding", "content-type", "content-encoding"];
/** The parameters that scripts and configuration may differ by. Others are not passed on. */
const ofShared = /^(?:v|ver|token)=/;
type SharedKind = Extract<PassedKind, "static" | "config">;

export class PassThrough {
  readonly #options: PassThroughOptions;
  readonly #client: UpstreamClient;
  /** What many ask for. They do not take each other's room: a client can ask for much of each. */
  readonly #shared: Readonly<Record<SharedKind, KeptAnswers>>;
  /** Flags, each of one person. */
  readonly #flags: KeptAnswers;
  /** Questions for what many ask for that are on their way. */
  readonly #asked = new Map<string, Promise<UpstreamAnswer | undefined>>();

  constructor(options: PassThroughOptions) {
    const { config, monotonicMs } = options;
    this.#options = options;
    this.#client = new UpstreamClient({
      ...{ url: config.upstreamUrl, timeoutMs: config.upstreamTimeoutMs, monotonicMs },
      requestsMax: config.upstreamRequestsMax,
    });
    const { upstreamKeptBytesMax, upstreamKeptAge: ageMsMax } = config;
    const keptIn = (share: number): KeptAnswers =>
      new KeptAnswers({ bytesMax: upstreamKeptBytesMax * share, ageMsMax, monotonicMs });
    this.#shared = { static: keptIn(1 / 4), config: keptIn(1 / 4) };
    this.#flags = keptIn(1 / 2);
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
    // All who ask for a shared answer read the same bytes. They may not be kept any more while the
    // last one reads, so whoever still reads holds them.
    return { ...answer, isHeldBy: isShared(kind) ? "its readers" : "its request" };
  }

  close(): void {
    this.#client.close();
  }

  async #answerShared({ head, hasRoom }: Asking, answers: KeptAnswers): Promise<Said> {
    const key = sharedKey(head);
    const kept = answers.get(key);
    if (kept?.isFresh === true)
      return { outcome: "fresh", answer: fixedOf(withAge(kept.answer, kept.ageMs), head) };
    const isAsked = hasRoom || this.#asked.has(key);
    const asking = { head, answers, hasKept: kept !== undefined };
    const answer = isAsked ? await this.#askedAnswer(key, asking) : undefined;
    if (answer !== undefined) return { outcome: "passed", answer: fixedOf(answer, head) };
    if (kept === undefined) return { outcome: isAsked ? "failed" : "full", answer: unavailable };
    return { outcome: "kept", answer: fixedOf(aged(kept.answer, kept.ageMs), head) };
  }

  /** Undefined: the upstream is away, or a kept answer is better than what it says. */
  async #askedAnswer(key: string, asking: SharedAsking): Promise<UpstreamAnswer | undefined> {
    const asked = this.#asked.get(key);
    if (asked === undefined) {
      // A client that leaves does not end it: others wait for it too, or will.
      const own = this.#ask(key, asking).finally(() => this.#asked.delete(key));
      this.#asked.set(key, own);
      return await own;
    }
    const answer = await asked;
    if (answer === undefined || isForAll(answer)) return answer;
    // What it says to another client, such as that this one asks too much, is for that client.
    return asking.hasKept ? undefined : await this.#ask(key, asking);
  }

  async #ask(key: string, { head, answers }: SharedAsking): Promise<UpstreamAnswer | undefined> {
    const answer = await this.#client.ask(head, noBytes, neverGone);
    if (typeof answer === "string" || answer.status >= 500) return undefined;
    const freshMs = answer.status === 200 ? freshMsOf(answer.headers) : undefined;
    if (freshMs !== undefined) answers.keep(key, answer, freshMs);
    return answer;
  }

  async #answerOwn({ head, body, gone }: Asking): Promise<Said> {
    // Only an answer is worth a look into the body: what has no room is asked before that.
    const answer = await this.#client.ask(head, body, gone);
    if (answer === "gone") return { outcome: "gone", answer: unavailable };
    if (typeof answer !== "string" && answer.status < 500 && answer.status !== 429) {
      const key = answer.status === 200 ? ownKey(head, body) : undefined;
      if (key !== undefined) this.#flags.keep(key, answer, 0);
      return { outcome: "passed", answer };
    }
    const key = this.#flags.bytes === 0 ? undefined : ownKey(head, body);
    const kept = key === undefined ? undefined : this.#flags.get(key);
    if (kept !== undefined) return { outcome: "kept", answer: aged(kept.answer, kept.ageMs) };
    if (answer === "full") return { outcome: "full", answer: unavailable };
    // What it says to a client that asks too much is for the client.
    if (typeof answer !== "string" && answer.status === 429) return { outcome: "passed", answer };
    return { outcome: "failed", answer: unavailable };
  }
}

/** Whether all who ask the same get it, whoever they are. */
function isForAll({ status, headers }: UpstreamAnswer): boolean {
  return status === 404 || (status === 200 && freshMsOf(headers) !== undefined);
}

const noBytes = new Uint8Array(0);
const neverGone = new AbortController().signal;

function isShared(kind: PassedKind): kind is SharedKind {
  return kind === "static" || kind === "config";
}

/** Without what would make another question of it, and another answer to keep, at no use. */
function sharedHead(head: PassedHead): PassedHead {
  const parameters = head.query.split("&").filter((parameter) => ofShared.test(parameter));
  return { ...head, method: "GET", query: parameters.join("&") };
}

/** A client that has it already is told so. */
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

/** Says how old it is, and is not to be kept by anybody else. */
function aged(answer: UpstreamAnswer, ageMs: number): UpstreamAnswer {
  const { headers, ...others } = withAge(answer, ageMs);
  const told = headers.filter(([name]) => name !== "Cache-Control");
  return { ...others, headers: [...told, ["Cache-Control", "no-cache"]] };
}

/** Says how old it is: that, too, which it was when it came. */
function withAge({ status, headers, body }: UpstreamAnswer, ageMs: number): UpstreamAnswer {
  const age = Math.floor((ageMsOf(headers) + ageMs) / 1_000);
  const others = headers.filter(([name]) => name !== "Age");
  return { status, headers: [...others, ["Age", String(age)]], body };
}

/** Configuration may differ by the page that asks for it. */
function sharedKey({ kind, path, query, headers }: PassedHead): string {
  const codings = headers["accept-encoding"] ?? "";
  const page = kind === "config" ? `${headers["origin"] ?? ""} ${pageOf(headers["referer"])}` : "";
  return [codings, page, path, query].join("\n");
}

function pageOf(referer: string | undefined): string {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : "";
}

/**
 * The same question of the same person, in an answer that the client can read; undefined where
 * no answer is kept.
 */
function ownKey(head: PassedHead, body: Uint8Array): string | undefined {
  const question = head.kind === "flags" ? flagsQuestion(body) : undefined;
  if (question === undefined) return undefined;
  const { method, path, query, headers } = head;
  const [packing, asked, beside] = question;
  const told = askedIn.map((name) => headers[name] ?? "");
  const before = [method, path, parametersOf(query), ...told, packing, asked.length, ""];
  const hash = createHash("sha256").update(before.join("\n"));
  return hash.update(asked).update(beside).digest("base64");
}

function parametersOf(query: string): string {
  return query
    .split("&")
    .filter((parameter) => !passing.test(parameter))
    .join("&");
}
