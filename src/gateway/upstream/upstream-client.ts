// Sends requests to the upstream. The number of requests and their bytes are limited, and each
// request has a deadline. After some consecutive failures, only one request at a time tests the
// upstream, and all other requests fail immediately. A failure does not count if the data of a
// client can cause it.

import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { whenUnanswered } from "../../platform/base/http-request.ts";
import { answerHeaders, type PassedHead, type PassedKind } from "./passed-head.ts";

interface UpstreamClientOptions {
  readonly url: string;
  readonly requestsMax: number;
  readonly timeoutMs: number;
  readonly monotonicMs: () => number;
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

type NoAnswer =
  | "full"
  | "gone"
  | "unavailable"
  /** The upstream closed the connection of this request, but may answer other requests. */
  | "ended";

const answerBytesMax = 16_777_216;
const answersBytesMax = 67_108_864;
/**
 * Maximum number of bytes of all bodies that are being sent. The limit leaves space in the budget
 * for events.
 */
const bodiesBytesMax = 33_554_432;
const failuresToOpen = 3;
/** Only these statuses mean an unavailable upstream. A single request may cause other 5xx. */
const unavailableStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
/**
 * Requests of these kinds have their own servers. These can be unavailable while the others work.
 */
const separateKinds: ReadonlySet<PassedKind> = new Set(["recordings", "logs"]);
const openMs = 1_000;
const connectionIdleMs = 20_000;

export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #url: URL;
  readonly #agent: HttpAgent | HttpsAgent;
  #inflight = 0;
  #bodyBytes = 0;
  #answerBytes = 0;
  readonly #breaker = new CircuitBreaker();
  readonly #separateBreaker = new CircuitBreaker();

  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    this.#url = new URL(options.url);
    const Agent = this.#url.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({
      keepAlive: true,
      scheduling: "lifo",
      timeout: connectionIdleMs,
      maxSockets: options.requestsMax,
    });
  }

  get inflight(): number {
    return this.#inflight;
  }

  /** Sends one request. Never rejects. `body` must not change until the answer is available. */
  async ask(
    head: PassedHead,
    body: Uint8Array,
    gone: AbortSignal,
  ): Promise<UpstreamAnswer | NoAnswer> {
    const { requestsMax, monotonicMs } = this.#options;
    const breaker = separateKinds.has(head.kind) ? this.#separateBreaker : this.#breaker;
    const { isOpen: isProbe, isProbed, openUntilMs } = breaker;
    if (isProbe && (isProbed || monotonicMs() < openUntilMs)) return "unavailable";
    if (this.#inflight >= requestsMax) return "full";
    if (this.#bodyBytes + body.length > bodiesBytesMax) return "full";
    if (isProbe) breaker.isProbed = true;
    this.#inflight++;
    this.#bodyBytes += body.length;
    try {
      const answer = await this.#send(head, body, gone);
      if (answer === "ended") return gone.aborted ? "gone" : "ended";
      if (answer === "full") return "full";
      const isWell = !unavailableStatuses.has(answer.status);
      if (isWell || !separateKinds.has(head.kind)) breaker.record(isWell, monotonicMs());
      return answer;
    } catch {
      if (gone.aborted) return "gone";
      breaker.record(false, monotonicMs());
      return "unavailable";
    } finally {
      this.#inflight--;
      this.#bodyBytes -= body.length;
      if (isProbe) breaker.isProbed = false;
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(
    { kind, method, path, query, headers }: PassedHead,
    body: Uint8Array,
    gone: AbortSignal,
  ): Promise<UpstreamAnswer | "full" | "ended"> {
    const { protocol, hostname, port, pathname } = this.#url;
    const request = protocol === "https:" ? httpsRequest : httpRequest;
    const late = AbortSignal.timeout(this.#options.timeoutMs);
    return new Promise((resolve, reject) => {
      const asked = request({
        // The host and port are set separately, so that no path can direct the request to another
        // server.
        hostname: hostname.replace(/^\[|\]$/g, ""),
        port,
        agent: this.#agent,
        method,
        path: `${pathname.replace(/\/$/, "")}${path}${query === "" ? "" : `?${query}`}`,
        headers: method === "POST" ? { ...headers, "content-length": body.length } : { ...headers },
        signal: AbortSignal.any([gone, late]),
      });
      const isConnected = whetherConnected(asked, protocol);
      const fail = (error: Error): void => {
        // Some servers reject a request after its head, and close while the body is being sent.
        const isRefused = !asked.writableFinished && !late.aborted;
        if (isConnected() && (isRefused || separateKinds.has(kind))) resolve("ended");
        else reject(error);
      };
      asked.on("response", (response) => {
        this.#read(response)
          // The answer may arrive before the whole body has been sent. After the answer, the caller
          // may reuse the memory of the body.
          .finally(() => asked.writableFinished || asked.destroy())
          .then(resolve, fail);
      });
      asked.on("error", fail);
      whenUnanswered(asked, fail);
      asked.end(method === "POST" ? body : undefined);
    });
  }

  async #read(response: IncomingMessage): Promise<UpstreamAnswer | "full"> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of response) {
        const { length } = chunk as Buffer;
        if (bytes + length > answerBytesMax || this.#answerBytes + length > answersBytesMax)
          return "full";
        bytes += length;
        this.#answerBytes += length;
        chunks.push(chunk as Buffer);
      }
      const body = Buffer.concat(chunks);
      return { status: response.statusCode ?? 502, headers: answerHeaders(response.headers), body };
    } finally {
      this.#answerBytes -= bytes;
    }
  }
}

class CircuitBreaker {
  #failures = 0;
  openUntilMs = 0;
  isProbed = false;

  get isOpen(): boolean {
    return this.#failures >= failuresToOpen;
  }

  record(isWell: boolean, nowMs: number): void {
    this.#failures = isWell ? 0 : this.#failures + 1;
    if (this.isOpen) this.openUntilMs = nowMs + openMs;
  }
}

function whetherConnected(asked: ClientRequest, protocol: string): () => boolean {
  let isConnected = false;
  asked.once("socket", (socket) => {
    isConnected = !socket.connecting;
    if (isConnected) return;
    socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
      isConnected = true;
    });
  });
  return () => isConnected;
}
