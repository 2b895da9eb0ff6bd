// The read-only HTTP port of the effects. The number of connections, requests and waits, the size of
// responses and the duration of requests are limited.

import type { IncomingMessage, ServerResponse } from "node:http";
import { HttpPort } from "../../../platform/base/http-port.ts";
import type { Log } from "../../../platform/base/log.ts";
import { isLoopback, isOwnHost } from "../../../platform/base/own-host.ts";
import {
  type AccessCode,
  accessProblems,
  challengeOf,
  type NeededToken,
  type PortAccess,
} from "../../../platform/base/port-access.ts";
import { SparseWarning } from "../../../platform/base/retry.ts";
import { Slots } from "../../../platform/base/slots.ts";
import type { EffectsReader } from "../store/port.ts";
import {
  badParameter,
  type ProblemCode,
  problem,
  problemTable,
  problemText,
  type ReadProblem,
} from "./parameters.ts";
import { type Members, routeOf } from "./routes.ts";
import { asOfJson, type ProcessStatus, statusMembers } from "./shapes.ts";
import { Waits, type Written, wantedFrom } from "./waits.ts";

export interface EffectsHttpOptions {
  readonly instance?: object;
  readonly host: string;
  readonly access: PortAccess;
  readonly reader: () => EffectsReader | undefined;
  readonly status: () => Promise<ProcessStatus>;
  readonly written?: Written;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly log: Pick<Log, "warn">;
  /** Maximum time in ms for which a request waits until events are applied. Default: 10,000. */
  readonly waitMsMax?: number;
  /** Maximum time in ms for which a client may read a response. Default: 30,000. */
  readonly answerMsMax?: number;
  /** Maximum total bytes of unsent responses. Default: 64 MiB. */
  readonly answerBytesMax?: number;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const connectionsMax = 128;
/** Maximum number of requests in progress. The other connections are for metrics and health. */
const requestsMax = 112;
const sayAgainMs = 30_000;
const waitsMax = 64;
const readsAtOnceMax = 16;
const smallBytes = 16_384;
const always = {
  "Cache-Control": "no-store",
  "Cross-Origin-Resource-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
};

export class EffectsHttp {
  readonly #options: EffectsHttpOptions;
  readonly #port: HttpPort;
  readonly #waits: Waits;
  readonly #waitMsMax: number;
  readonly #reads = new Slots(readsAtOnceMax);
  readonly #failures: SparseWarning;
  /**
   * The controllers of the requests in progress. `close` aborts them. Signals derived from one common
   * signal would stay in memory until the port is closed.
   */
  readonly #requests = new Set<AbortController>();
  #isClosed = false;
  #answerBytes = 0;

  constructor(options: EffectsHttpOptions) {
    this.#options = options;
    this.#waitMsMax = options.waitMsMax ?? 10_000;
    this.#failures = new SparseWarning(options.log, sayAgainMs);
    this.#waits = new Waits({
      applied: async () => await this.#reader().applied(),
      written: options.written,
      timeoutMs: this.#waitMsMax,
      waitsMax,
    });
    this.#port = new HttpPort({
      answer: (request, response) => void this.#take(request, response),
      connectionsMax,
      purpose: "effects queries",
      setting: "effectsPort",
    });
  }

  get requests(): number {
    return this.#requests.size;
  }

  get waits(): number {
    return this.#waits.waiting;
  }

  listen(port: number): Promise<number> {
    return this.#port.listen(this.#options.host, port);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const request of this.#requests) request.abort(new Error("the process is closing"));
    return this.#port.close();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    this.#requests.add(gone);
    response.once("close", () => gone.abort(new Error("the client disconnected")));
    const { headers } = request;
    const hasBody =
      headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    if (hasBody) response.shouldKeepAlive = false;
    try {
      this.#send(response, await this.#answer(request, gone.signal));
    } catch (error) {
      if (gone.signal.aborted || this.#isClosed) return void response.destroy();
      const reason = (error as Error).message;
      this.#failures.warn({ reason }, "effects HTTP port: requests fail");
      this.#send(response, problemAnswer(databaseAway));
    } finally {
      this.#requests.delete(gone);
    }
  }

  async #answer(request: IncomingMessage, signal: AbortSignal): Promise<Answer> {
    const { host, access } = this.#options;
    const [path = "", queryText = ""] = splitUrl(request.url ?? "");
    const isRead = request.method === "GET" || request.method === "HEAD";
    const refusal = access.problemOf(request, isRead ? tokenFor(path) : "admin");
    const isHealth = path === "/livez" || path === "/readyz";
    if (refusal !== undefined && !isHealth) return refused(refusal);
    if (!isRead) return problemAnswer(problem("method_not_allowed", "this port is read-only"));
    const withDetails = refusal === undefined;
    if (path === "/livez") {
      const { instance } = this.#options;
      return json(200, { status: "alive", ...(withDetails ? { instance } : {}) });
    }
    if (path === "/readyz") return await this.#ready(withDetails);
    if (path === "/metrics") {
      const { metrics } = this.#options;
      return { status: 200, contentType: metrics.contentType, body: await metrics.text() };
    }
    if (this.#requests.size > requestsMax)
      return problemAnswer(problem("overloaded", `${requestsMax} requests are in progress`));
    // Without this check, a page of another site could read the responses (DNS rebinding).
    if (isLoopback(host) && !isOwnHost(request.headers.host, host))
      return problemAnswer(problem("foreign_host", foreignHost(request)));
    return await this.#read(path, new URLSearchParams(queryText), signal);
  }

  async #read(path: string, query: URLSearchParams, signal: AbortSignal): Promise<Answer> {
    const route =
      path === "/status"
        ? async (reader: EffectsReader): Promise<Members> =>
            query.size > 0
              ? badParameter([...query.keys()][0] ?? "", "this path has no such parameter")
              : await statusMembers(await this.#options.status(), reader)
        : routeOf(path);
    if (route === undefined) return problemAnswer(nothingHere);
    const reader = this.#options.reader();
    if (reader === undefined) return problemAnswer(databaseAway);
    const late = await this.#waitFor(query.getAll("wait_for"), signal);
    if (late !== undefined) return problemAnswer(late);
    query.delete("wait_for");
    return await this.#reads.run(async () => {
      signal.throwIfAborted();
      // The positions are read before the rows, so that the rows are at least as new as `as_of`.
      const asOf = asOfJson(await reader.applied());
      const members = await route(reader, query);
      if (typeof members !== "string") return problemAnswer(members);
      return jsonAnswer(200, `{${members},"as_of":${asOf}}\n`);
    });
  }

  async #waitFor(texts: readonly string[], signal: AbortSignal): Promise<ReadProblem | undefined> {
    if (texts.length === 0) return undefined;
    let wanted: ReturnType<typeof wantedFrom>;
    try {
      wanted = wantedFrom(texts);
    } catch (error) {
      return badParameter("wait_for", (error as Error).message);
    }
    const outcome = await this.#waits.until(wanted, signal);
    if (outcome === "applied") return undefined;
    if (outcome === "too many") return problem("overloaded", `${waitsMax} requests already wait`);
    const seconds = this.#waitMsMax / 1_000;
    return problem(
      "wait_timed_out",
      `wait_for: not all sequences were applied within ${seconds} s`,
    );
  }

  async #ready(withDetails: boolean): Promise<Answer> {
    const { reader, status } = this.#options;
    const reasons =
      reader() === undefined ? ["waiting for the database"] : (await status()).reasons;
    return reasons.length === 0
      ? json(200, { status: "ready" })
      : json(503, { status: "unready", ...(withDetails ? { reasons } : {}) });
  }

  #reader(): EffectsReader {
    const reader = this.#options.reader();
    if (reader === undefined) throw new Error("the database is not open");
    return reader;
  }

  #send(response: ServerResponse, { status, contentType, body }: Answer): void {
    const { answerMsMax = 30_000, answerBytesMax = 67_108_864 } = this.#options;
    if (response.destroyed) return;
    const bytes = Buffer.byteLength(body);
    if (bytes > smallBytes && this.#answerBytes + bytes > Math.max(answerBytesMax, bytes)) {
      const slow = problem("overloaded", "too many unsent answers to slow clients");
      this.#send(response, problemAnswer(slow));
      return;
    }
    this.#answerBytes += bytes;
    const late = setTimeout(() => response.destroy(), answerMsMax);
    response.once("close", () => {
      this.#answerBytes -= bytes;
      clearTimeout(late);
    });
    response
      .writeHead(status, {
        ...always,
        "Content-Type": contentType,
        "Content-Length": bytes,
        ...challengeOf(status),
        ...(status === 405 ? { Allow: "GET, HEAD" } : {}),
        ...(status === 503 ? { "Retry-After": "1" } : {}),
      })
      .end(body);
  }
}

const databaseAway = problem(
  "unavailable",
  "retry; if the error persists, see the log of penstock effects and its /readyz",
);
const nothingHere = problem(
  "not_found",
  "this path does not exist; the paths are /projects/<project>/persons, groups, group-types, usage and spikes, /status, /metrics, /livez and /readyz",
);

/** Returns the token that a path needs. The read-only token gives no access to persons. */
function tokenFor(path: string): NeededToken {
  return /^\/(?:status|metrics|livez|readyz|projects\/[^/]+\/usage)$/.test(path) ? "read" : "admin";
}

function refused(code: AccessCode): Answer {
  return problemAnswer(problem(code, accessProblems[code].detail));
}

function foreignHost({ socket }: IncomingMessage): string {
  return `use an IP address such as http://127.0.0.1:${socket.localPort}/, localhost, or the name in PENSTOCK_EFFECTS_HOST. Other names are rejected, because pages of other sites could read the answers through them`;
}

function splitUrl(url: string): [string, string] {
  const at = url.indexOf("?");
  return at < 0 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
}

function problemAnswer(found: ReadProblem): Answer {
  const code: ProblemCode = found.code;
  const { status } = problemTable[code];
  return { status, contentType: "application/problem+json", body: problemText(found) };
}

function json(status: number, value: object): Answer {
  return jsonAnswer(status, `${JSON.stringify(value)}\n`);
}

function jsonAnswer(status: number, body: string): Answer {
  return { status, contentType: "application/json", body };
}
