// Sends the requests of the project whose rules change, each until a 200 answers it, and records
// every attempt.

import { setTimeout as delay } from "node:timers/promises";
import { Client } from "undici";
import { neverSent } from "../../../bench/load/client.ts";
import { keyOf } from "../event-kinds.ts";
import type { GatewayProcess } from "../scenario.ts";
import { type Form, ruledProject, textOf, uuidOf } from "./ruled-events.ts";

export interface Attempt {
  readonly sentMs: number;
  readonly answeredMs: number;
  /** `refused`: nothing of it is stored. `unknown`: any part of it may be stored. */
  readonly verdict: "answered" | "refused" | "unknown";
  readonly label: string;
  readonly accepted?: number;
  readonly filtered?: number;
  /** Only in the form `v1`: the result of each event, such as `ok` or `drop quarantined`. */
  readonly results?: readonly string[];
}

export interface RuledRequest {
  readonly form: Form;
  readonly first: number;
  readonly count: number;
  readonly attempts: Attempt[];
}

interface SendersOptions {
  readonly gateway: GatewayProcess;
  /** The pause of each sender between two requests. */
  readonly pauseMs: number;
}

const senders: readonly Form[] = ["capture", "capture", "batch", "batch", "v1", "v1", "history"];
const counts: Readonly<Record<Form, number>> = {
  capture: 1,
  batch: 10,
  v1: 10,
  history: 5,
  large: 2_000,
};
const paths: Readonly<Record<Form, string>> = {
  capture: "/capture/",
  batch: "/batch/",
  history: "/batch/",
  large: "/batch/",
  v1: "/i/v1/analytics/events",
};
const largePauseMs = 4_000;
const againMs = 100;
const answerMsMax = 30_000;
/** Maximum time after `stop` until an attempt is the last one. */
const lastMsMax = 20_000;

export class RuledSenders {
  readonly #options: SendersOptions;
  readonly #stopping = new AbortController();
  readonly requests: RuledRequest[] = [];
  #next = 0;
  #running: Promise<unknown> | undefined;
  #endMs = Number.POSITIVE_INFINITY;

  constructor(options: SendersOptions) {
    this.#options = options;
  }

  start(): void {
    const { pauseMs } = this.#options;
    this.#running = Promise.all([
      ...senders.map((form) => this.#run(form, pauseMs)),
      this.#run("large", Math.max(largePauseMs, 10 * pauseMs)),
    ]);
  }

  async stop(): Promise<void> {
    this.#endMs = performance.now() + lastMsMax;
    this.#stopping.abort();
    await this.#running;
  }

  async #run(form: Form, pauseMs: number): Promise<void> {
    const { signal } = this.#stopping;
    let client: Client | undefined;
    let origin = "";
    while (!signal.aborted) {
      const request: RuledRequest = { form, first: this.#next, count: counts[form], attempts: [] };
      this.#next += request.count;
      this.requests.push(request);
      const body = bodyOf(request);
      for (;;) {
        const { url } = this.#options.gateway;
        if (client === undefined || url !== origin) {
          await client?.destroy();
          client = clientOf(url);
          origin = url;
        }
        const attempt = await send(client, request, body);
        request.attempts.push(attempt);
        if (attempt.verdict === "answered" || /^4/.test(attempt.label)) break;
        if (performance.now() > this.#endMs) break;
        await delay(againMs);
      }
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
    await client?.destroy();
  }
}

function clientOf(url: string): Client {
  return new Client(url, { headersTimeout: answerMsMax, bodyTimeout: answerMsMax });
}

function bodyOf({ form, first, count }: RuledRequest): string {
  const key = keyOf(ruledProject);
  const items = Array.from({ length: count }, (_, at) => textOf(first + at, form));
  if (form === "capture") return `{"api_key":"${key}",${items[0]!.slice(1)}`;
  if (form === "v1") return `{"created_at":"2026-01-02T03:04:06.000Z","batch":[${items.join()}]}`;
  const lane = form === "history" ? '"historical_migration":true,' : "";
  return `{"api_key":"${key}",${lane}"batch":[${items.join()}]}`;
}

async function send(client: Client, request: RuledRequest, body: string): Promise<Attempt> {
  const { form, first, count } = request;
  const authorization = { authorization: `Bearer ${keyOf(ruledProject)}` };
  const headers = {
    "content-type": "application/json",
    ...(form === "v1" ? authorization : {}),
  };
  const sentMs = Date.now();
  try {
    const answer = await client.request({ path: paths[form], method: "POST", headers, body });
    const text = await answer.body.text();
    const times = { sentMs, answeredMs: Date.now() };
    return { ...times, ...attemptOf(answer.statusCode, text, { form, first, count }) };
  } catch (error) {
    const { code = "unknown" } = error as { code?: string };
    const verdict = neverSent.has(code) ? "refused" : "unknown";
    return { sentMs, answeredMs: Date.now(), verdict, label: `error ${code}` };
  }
}

function attemptOf(
  status: number,
  text: string,
  { form, first, count }: Pick<RuledRequest, "form" | "first" | "count">,
): Omit<Attempt, "sentMs" | "answeredMs"> {
  const json = JSON.parse(text) as Record<string, unknown>;
  if (status === 200 && form === "v1") {
    const found = json["results"] as Record<string, { result: string; details?: string }>;
    const results = Array.from({ length: count }, (_, at) => {
      const { result, details } = found[uuidOf(first + at)] ?? { result: "absent" };
      return result === "drop" ? `drop ${details}` : result;
    });
    const isWhole = results.every((result) => /^(ok|warning|drop .*)$/.test(result));
    if (!isWhole) return { verdict: "unknown", label: "200 in part" };
    const accepted = results.filter((result) => !result.startsWith("drop")).length;
    return { verdict: "answered", label: "200", accepted, filtered: count - accepted, results };
  }
  if (status === 200) {
    const { accepted, filtered = 0 } = json as { accepted: number; filtered?: number };
    return { verdict: "answered", label: "200", accepted, filtered };
  }
  const code = String(json["code"] ?? json["error"]);
  const mayBeStored =
    status >= 500 && code !== "overloaded" && (form !== "capture" || code === "timeout");
  return { verdict: mayBeStored ? "unknown" : "refused", label: `${status} ${code}` };
}
