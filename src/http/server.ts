// The public port: begins each request, with what refuses it before its body is read; listens and
// drains. Knows nothing of events: bodies go to the intake, answers come back through the exchange.
// What there is at a path is told by the router.

import { setTimeout as delay } from "node:timers/promises";
import type { ClientWarningTaker } from "../base/client-warning.ts";
import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { TurnBudget } from "../base/turn-budget.ts";
import type { Admission, Intake, Peek } from "../base/types.ts";
import { bodyTooLarge, problemOf, unsupportedEncoding } from "./body/body-problems.ts";
import { BodyReader } from "./body/body-reader.ts";
import { ChunkSenders } from "./body/chunk-senders.ts";
import { ChunkTurns } from "./body/chunk-turns.ts";
import { GrowingBodies } from "./body/growing-bodies.ts";
import { Layer } from "./body/payload-form.ts";
import { AddressSource, type AddressSourceConfig } from "./client/address-source.ts";
import type { ConnectionId } from "./client/connection-id.ts";
import type { ConnectionLimits } from "./client/connection-limits.ts";
import { ANSWERS_AT_ONCE_MAX, HttpExchange } from "./exchange.ts";
import type { Clock, ExchangeShared, HttpMetrics } from "./exchange-shared.ts";
import { framingOf } from "./framing.ts";
import { type CertificateFiles, Listener, type PortSharing } from "./listener.ts";
import { LongAnswers } from "./long-answers.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import { readQuery } from "./query.ts";
import { ReplyWriter } from "./reply.ts";
import { type Routed, type RoutedPreflight, Router } from "./router.ts";
import { isSdkRoute } from "./sdk-requests.ts";
import type { HttpRequest, HttpResponse } from "./uws.ts";
import { isV1Encoding, readV1Head } from "./v1-head.ts";

export interface HttpServerOptions {
  readonly config: AddressSourceConfig & {
    readonly bodyBytesMax: number;
    readonly inflatedBytesMax: number;
    readonly requestTimeoutMs: number;
  };
  readonly intake: Intake;
  readonly admission: Admission;
  readonly metrics: HttpMetrics;
  readonly clientWarnings?: ClientWarningTaker;
  /** Without it no body has a hint. */
  readonly peek?: Peek | undefined;
  readonly log: Pick<Log, "error">;
  readonly clock: Clock;
  /** Milliseconds for which this thread had a processor; `clock.monotonicMs` unless given. */
  readonly workMs?: (() => number) | undefined;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** The code to refuse every request with for now, before its body is read. */
  readonly refusal?: () => ErrorCode | undefined;
  /** With it a client's address is read once a connection, else once a request. */
  readonly connectionId?: ConnectionId | undefined;
  /** The scripts that pages load from here, where they are. */
  readonly files?: StaticFiles | undefined;
  /** With them the port speaks TLS, and nothing else. */
  readonly certificate?: CertificateFiles | undefined;
}

/**
 * Clients that had their last answer before the drain send the next request on the same connection:
 * they get an answer, not a reset.
 */
const lingerMsMax = 100;

const NOTHING_SENT: Problem = {
  code: "empty_body",
  detail: "A GET has its events in the query, as data=...: send them so, or with POST in the body",
};
export class HttpServer {
  /** Connections open, how many may be, and how many were closed because they were one too many. */
  readonly connections: ConnectionLimits;
  readonly #options: HttpServerOptions;
  readonly #shared: ExchangeShared;
  readonly #reader: BodyReader;
  readonly #clients: AddressSource;
  readonly #listener: Listener;

  constructor(options: HttpServerOptions) {
    const { config, connectionId, files, log } = options;
    this.#options = options;
    this.#shared = sharedOf(options);
    this.#reader = new BodyReader({
      ...config,
      growing: this.#shared.growing,
      chunks: this.#shared.chunks,
      intake: options.intake,
      log,
      monotonicMs: () => options.clock.monotonicMs(),
    });
    this.#clients = new AddressSource(config, { connectionId, log });
    this.connections = this.#clients.limits;
    const router = new Router({
      files,
      wallMs: () => options.clock.wallMs(),
      begin: (response, request, routed) => this.#begin(response, request, routed),
      preflight: (response, request, routed) => this.#preflight(response, request, routed),
    });
    this.#listener = new Listener((app) => {
      app.filter((response, change) => this.#clients.follow(response, change));
      router.prepare(app);
    }, options.certificate);
  }

  /** Requests begun and not yet answered. */
  inflight(): number {
    return this.#shared.inflight;
  }

  /**
   * The port, 0 being any free one, or an Error that says what is in the way. `sharing` is `alone`
   * unless given.
   */
  listen(host: string, port: number, sharing: PortSharing = "alone"): Promise<number> {
    return this.#listener.listen(host, port, sharing);
  }

  /**
   * Shows new connections what the certificate's files hold now. Throws, and changes nothing, when
   * they do not hold a pair.
   */
  renewCertificate(): void {
    this.#listener.renewCertificate();
  }

  /**
   * Stops listening; events that still come on open connections are answered 503 `draining`, and
   * all else as always. Resolves to the requests still in flight: 0 when there are none, after a
   * moment for those on their way, else what is left after `timeoutMs`.
   */
  async drain(timeoutMs: number): Promise<number> {
    const shared = this.#shared;
    shared.draining = true;
    this.#listener.stop();
    const lingerMs = Math.min(lingerMsMax, timeoutMs);
    await delay(lingerMs);
    if (shared.inflight === 0) return 0;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(shared.inflight), timeoutMs - lingerMs);
      shared.idle = () => {
        clearTimeout(timer);
        resolve(0);
      };
    });
  }

  /** Drops all connections. */
  close(): void {
    this.#listener.close();
  }

  #begin(response: HttpResponse, request: HttpRequest, routed: Routed): HttpExchange {
    const bytesDeclared = bytesDeclaredIn(request.getHeader("content-length"));
    const senderAddress = this.#clients.of(response, request);
    const exchange = new HttpExchange(this.#shared, response, {
      label: routed.label,
      path: routed.path,
      origin: request.getHeader("origin"),
      contentEncoding: request.getHeader("content-encoding"),
      bytesDeclared,
      clientAddress: this.#options.config.recordIp ? senderAddress : "",
      senderAddress,
    });
    exchange.headOnly = routed.headOnly ?? false;
    if (exchange.isV1) beginV1(exchange, request);
    else {
      const query = request.getQuery();
      if (query !== "" && query !== undefined) readQuery(query, exchange);
    }
    response.onAborted(() => exchange.abort());
    const isChunked = bytesDeclared < 0 && request.getHeader("transfer-encoding") !== "";
    if (isChunked && this.#takesNoChunks(senderAddress)) {
      exchange.rejectConnection();
      return exchange;
    }
    response.onData((chunk, isLast) => {
      exchange.isBeingRead = isLast;
      this.#reader.chunk(exchange, chunk, isLast);
      exchange.isBeingRead = false;
    });
    const everyLine = this.#clients.isReadByOthers(request);
    exchange.userAgent = this.#clients.agentOf(request, everyLine);
    const framing = framingOf(request, bytesDeclared, everyLine);
    if (framing !== "sure") exchange.endsInDoubt = true;
    const problem =
      typeof framing === "object"
        ? framing
        : (problemOfRoute(exchange.body, routed) ?? this.#problemAtHead(exchange));
    if (problem !== undefined) exchange.body.discard(problem);
    if (routed.verdict !== undefined) exchange.body.discard(routed.verdict);
    return exchange;
  }

  #takesNoChunks(senderAddress: string): boolean {
    const { chunks, chunkSenders } = this.#shared;
    return chunks.isOver || chunkSenders.isBarred(senderAddress);
  }

  /** Says why not to keep the body at all. */
  #problemAtHead({ label, isV1, body }: HttpExchange): Problem | undefined {
    const { admission, config, refusal } = this.#options;
    const lengthy =
      body.bytesDeclared > config.bodyBytesMax
        ? bodyTooLarge(body, config.bodyBytesMax)
        : undefined;
    if (isSdkRoute(label)) return lengthy;
    if (this.#shared.draining) return problemOf("draining");
    if (lengthy !== undefined) return lengthy;
    if (isV1 && !isV1Encoding(body.contentEncoding)) return unsupportedEncoding;
    // Whether a larger one has room shows as it arrives: others may be done or evicted by then.
    if (!admission.tryTake(0, 0) && !this.#reader.makeRoom(body, admission.lacking(0, 0)))
      return problemOf("overloaded");
    const code = refusal?.();
    return code === undefined ? undefined : problemOf(code);
  }

  #preflight(response: HttpResponse, request: HttpRequest, routed: RoutedPreflight): void {
    const framing = framingOf(request, bytesDeclaredIn(request.getHeader("content-length")), true);
    if (typeof framing === "object") {
      this.#begin(response, request, { ...routed, verdict: framing }).endsInDoubt = true;
      return;
    }
    // The address is not used: but what is asked of a connection's first request is not to be asked
    // of a later one.
    this.#clients.of(response, request);
    const { allow, label } = routed;
    const origin = request.getHeader("origin");
    const requestedHeaders = request.getHeader("access-control-request-headers");
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    // Put off to a turn of its own, as every answer to a request whose end nobody says.
    setImmediate(() => {
      const { metrics, reply } = this.#shared;
      if (!isGone)
        response.cork(() => reply.preflight(response, { origin, requestedHeaders, allow }));
      metrics.requestFinished(label, 200, 0, 0);
    });
  }
}

function sharedOf({
  admission,
  clock,
  log,
  metrics,
  ...options
}: HttpServerOptions): ExchangeShared {
  const monotonicMs = (): number => clock.monotonicMs();
  return {
    admission,
    clock,
    log,
    metrics,
    clientWarnings: options.clientWarnings,
    reply: new ReplyWriter(options.random),
    growing: new GrowingBodies(),
    chunks: new ChunkTurns({ nextTurn: setImmediate, workMs: options.workMs ?? monotonicMs }),
    chunkSenders: new ChunkSenders(monotonicMs),
    long: new LongAnswers({ admission, monotonicMs }),
    peek: options.peek,
    inflight: 0,
    draining: false,
    atOnce: new TurnBudget(ANSWERS_AT_ONCE_MAX),
    idle: () => {},
  };
}

/** The query of the newer protocol means nothing, and neither do forms around its body. */
function beginV1(exchange: HttpExchange, request: HttpRequest): void {
  const answerResults = (text: Buffer, hasRetry: boolean) => exchange.answerResults(text, hasRetry);
  exchange.v1 = { ...readV1Head(request), answerResults };
  exchange.body.layers |= Layer.Form | Layer.Base64;
}

/** Says why a request is refused even where there is room, and a store that takes events. */
function problemOfRoute(
  { queryData }: { readonly queryData: string },
  { verdict, isGet = false }: Routed,
): Problem | undefined {
  if (isGet && queryData === "") return NOTHING_SENT;
  return verdict !== undefined && "code" in verdict ? verdict : undefined;
}

/** uWS refuses what is no number; were it not to, NaN would make any body a small one. */
function bytesDeclaredIn(contentLength: string): number {
  const bytes = contentLength === "" ? -1 : Number(contentLength);
  return Number.isSafeInteger(bytes) ? bytes : -1;
}
