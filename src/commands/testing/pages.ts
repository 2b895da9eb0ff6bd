// The pages below /testing of the admin port. Tests in any language can read stored events.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { ClientWarning } from "../../platform/base/client-warning.ts";
import { isForeign, isOwnHost } from "../../platform/base/own-host.ts";
import { type PortAccess, refuseAccess } from "../../platform/base/port-access.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { type Expected, expectedFault, matches, missText, nearestRecord } from "./expectation.ts";
import type { StoredRecords } from "./stored-records.ts";

interface TestingSource {
  readonly url: string;
  readonly key: string;
  readonly adminHost: string;
  readonly access: PortAccess;
  readonly records: StoredRecords;
  readonly clientWarnings: () => readonly ClientWarning[];
  readonly requests: () => Promise<number>;
  readonly wallMs: () => number;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const bodyBytesMax = 1_048_576;
const timeoutMsDefault = 3_000;
const timeoutMsMax = 600_000;
const pollMs = 10;

export class TestingPages {
  readonly #source: TestingSource;
  readonly #closing = new AbortController();
  #resetMs = 0;

  constructor(source: TestingSource) {
    this.#source = source;
  }

  /** Answers a request. Returns false if its path is not below /testing. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    if (path !== "/testing" && !path.startsWith("/testing/")) return false;
    const refusal = this.#source.access.problemOf(request, "admin");
    if (refusal !== undefined) refuseAccess(response, refusal);
    else void this.#answer(`${request.method} ${path}`, request, response);
    return true;
  }

  close(): void {
    this.#closing.abort();
  }

  async #answer(asked: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
    let answer: Answer;
    try {
      if (!isOwnHost(request.headers.host, this.#source.adminHost))
        answer = message(403, "open it by an IP address or by localhost");
      else if (isForeign(request)) answer = message(403, "cross-site requests are not allowed");
      else answer = await this.#result(asked, request, signal);
    } catch (error) {
      answer = message(503, `the store did not respond: ${(error as Error).message}`);
    }
    response
      .writeHead(answer.status, { "Content-Type": "application/json", "Cache-Control": "no-store" })
      .end(`${JSON.stringify(answer.body)}\n`);
  }

  async #result(asked: string, request: IncomingMessage, signal: AbortSignal): Promise<Answer> {
    const { url, key, records, wallMs } = this.#source;
    switch (asked) {
      case "GET /testing":
        return { status: 200, body: { url, key } };
      case "GET /testing/events":
        await records.catchUp(signal);
        return { status: 200, body: { events: records.all } };
      case "POST /testing/reset":
        await records.reset(signal);
        this.#resetMs = wallMs();
        return { status: 200, body: {} };
      case "POST /testing/expect":
        return await this.#expect(await jsonOf(request), signal);
      default:
        return message(
          404,
          `${asked} is unknown: use GET /testing, GET /testing/events, POST /testing/reset or POST /testing/expect`,
        );
    }
  }

  async #expect(asked: unknown, signal: AbortSignal): Promise<Answer> {
    const fault = expectedFault(asked);
    if (fault !== undefined) return message(400, fault);
    const { timeout_ms: timeoutMs = timeoutMsDefault, ...expected } = asked as Expected;
    if (typeof timeoutMs !== "number" || !(timeoutMs >= 0 && timeoutMs <= timeoutMsMax))
      return message(
        400,
        `timeout_ms must be a number from 0 to ${timeoutMsMax} (got ${JSON.stringify(timeoutMs)})`,
      );
    const { records } = this.#source;
    await records.catchUp(signal);
    const untilMs = performance.now() + timeoutMs;
    for (let [seen, checked] = [records.all, 0]; ; ) {
      const { all } = records;
      const event = all.slice(all === seen ? checked : 0).find((one) => matches(one, expected));
      if (event !== undefined) return { status: 200, body: { event } };
      [seen, checked] = [all, all.length];
      if (performance.now() >= untilMs || signal.aborted)
        return await this.#miss(expected, timeoutMs);
      await pauseUntilAborted(pollMs, signal);
    }
  }

  async #miss(expected: Expected, waitedMs: number): Promise<Answer> {
    const { records, clientWarnings, requests, url } = this.#source;
    const refusals = clientWarnings().filter(({ atMs }) => atMs >= this.#resetMs);
    const miss = { expected, waitedMs, records: records.all, refusals, url };
    const text = missText({ ...miss, requests: await requests() });
    const nearest = nearestRecord(records.all, expected);
    return { status: 404, body: { message: text, nearest, refusals } };
  }
}

function message(status: number, text: string): Answer {
  return { status, body: { message: text } };
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > bodyBytesMax) return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
