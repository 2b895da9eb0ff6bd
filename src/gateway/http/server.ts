// The public port. It begins each request, and rejects it immediately if its head is invalid. It
// also listens and drains.

import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import type { Tracing } from "../../platform/base/tracing.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import { bodyTooLarge, problemOf, unsupportedEncoding } from "../body/body-problems.ts";
import { BodyReader } from "../body/body-reader.ts";
import { ChunkSenders, ChunkTurns } from "../body/chunk-turns.ts";
import { GrowingBodies } from "../body/growing-bodies.ts";
import type { QuickInflater } from "../body/inflate.ts";
import { Layer } from "../body/payload-form.ts";
import type { Admission } from "../intake/admission.ts";
import { type PassThrough, passerOf } from "../upstream/pass-through.ts";
import { signatureMs } from "./certificate.ts";
import { AddressSource, type AddressSourceConfig } from "./client/address-source.ts";
import type { ConnectionAddon } from "./client/connection-id.ts";
import type { ConnectionLimits } from "./client/connection-limits.ts";
import { handshakesPerTurn } from "./client/new-connections.ts";
import { UnreadAnswers } from "./client/unread-answers.ts";
import { conversionFor } from "./conversion/converter.ts";
import {
  ANSWERS_AT_ONCE_MAX,
  type Clock,
  type ExchangeShared,
  HttpExchange,
  type HttpMetrics,
} from "./exchange.ts";
import { type CertificateFiles, Listener, type PortSharing } from "./listener.ts";
import { LongAnswers } from "./long-answers.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import { isSdkRoute } from "./paths.ts";
import type { Intake, Peek } from "./port.ts";
import { type OutageMs, ReplyWriter } from "./reply.ts";
import { framingOf, isV1Encoding, readQuery, readV1Head } from "./request-head.ts";
import { type Routed, type RoutedPreflight, Router } from "./router.ts";
import type { HttpRequest, HttpResponse } from "./uws.ts";

interface HttpServerOptions {
  readonly config: AddressSourceConfig & {
    readonly bodyBytesMax: number;
    readonly inflatedBytesMax: number;
    readonly requestTimeoutMs: number;
  };
  readonly intake: Intake;
  readonly admission: Admission;
  readonly metrics: HttpMetrics;
  readonly clientWarnings?: ClientWarningTaker;
  readonly inflater?: QuickInflater | undefined;
  readonly peek?: Peek | undefined;
  readonly log: Pick<Log, "error">;
  readonly clock: Clock;
  readonly workMs?: (() => number) | undefined;
  readonly random: () => number;
  /**
   * Returns the error for a request, or undefined to accept it. Called with the declared length,
   * before the body is read.
   */
  readonly refusal?: (requestBytes: number) => ErrorCode | undefined;
  readonly outageMs?: OutageMs;
  readonly connection: ConnectionAddon;
  readonly files?: StaticFiles | undefined;
  readonly passThrough?: PassThrough | undefined;
  readonly certificate?: CertificateFiles | undefined;
  readonly tracing?: Tracing | undefined;
}

/**
 * A drain waits until no new request has arrived for this time. So a client that sends its next
 * request immediately after an answer does not get a connection reset.
 */
const lingerMs = 100;
const lingerMsMax = 2_000;

const EXPECTED_BYTES_MIN = 1_023;
const CONTINUE = "100-continue";

const NOTHING_SENT: Problem = {
  code: "empty_body",
  detail:
    "A GET must have its events in the query, as data=...: add data, or send the events in the body of a POST",
};

export class HttpServer {
  readonly connections: ConnectionLimits;
  readonly unread: UnreadAnswers;
  readonly #options: HttpServerOptions;
  readonly #shared: ExchangeShared;
  readonly #reader: BodyReader;
  readonly #clients: AddressSource;
  readonly #listener: Listener;
  #begun = 0;

  constructor(options: HttpServerOptions) {
    const { config, connection, files, log } = options;
    const monotonicMs = (): number => options.clock.monotonicMs();
    this.#options = options;
    this.unread = new UnreadAnswers({ addon: connection, monotonicMs });
    this.#shared = sharedOf(options);
    this.#reader = new BodyReader({
      ...config,
      growing: this.#shared.growing,
      chunks: this.#shared.chunks,
      intake: options.intake,
      inflater: options.inflater,
      log,
      monotonicMs,
    });
    this.#clients = new AddressSource(config, {
      connectionId: connection.connectionId,
      unread: this.unread,
    });
    this.connections = this.#clients.limits;
    this.#measureHandshakes();
    const { passThrough } = options;
    const begin = (response: HttpResponse, request: HttpRequest, routed: Routed) =>
      this.#begin(response, request, routed);
    const router = new Router({
      files,
      wallMs: () => options.clock.wallMs(),
      begin,
      preflight: (response, request, routed) => this.#preflight(response, request, routed),
      pass: passThrough && passerOf(passThrough, begin, this.#shared.long),
    });
    this.#listener = new Listener(
      (app) => {
        app.filter((response, change) => this.#clients.follow(response, change));
        router.prepare(app);
      },
      options.certificate,
      (socket) => this.unread.limit(socket),
    );
  }

  inflight(): number {
    return this.#shared.inflight;
  }

  listen(host: string, port: number, sharing: PortSharing = "alone"): Promise<number> {
    return this.#listener.listen(host, port, sharing);
  }

  renewCertificate(): void {
    this.#listener.renewCertificate();
    this.#measureHandshakes();
  }

  /**
   * Answers further event requests on open connections with 503 `draining`. Waits until no requests
   * arrive and none is in flight, but at most `timeoutMs`. Returns the number of requests that are
   * still in flight.
   */
  async drain(timeoutMs: number): Promise<number> {
    const shared = this.#shared;
    let isPast = false;
    const timer = setTimeout(() => {
      isPast = true;
      shared.idle();
    }, timeoutMs);
    shared.draining = true;
    await hasReadAll();
    this.#listener.stop();
    await this.#linger(Math.min(lingerMsMax, timeoutMs));
    for (await hasReadAll(); shared.inflight > 0 && !isPast; await hasReadAll())
      await new Promise<void>((resolve) => {
        shared.idle = resolve;
      });
    clearTimeout(timer);
    return shared.inflight;
  }

  #measureHandshakes(): void {
    const { certificate } = this.#options;
    if (certificate !== undefined)
      this.#clients.opening.perTurn = handshakesPerTurn(signatureMs(certificate.key));
  }

  async #linger(msMax: number): Promise<void> {
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + msMax;
    let begun = this.#begun;
    let quietSinceMs = clock.monotonicMs();
    for (;;) {
      const leftMs = Math.min(quietSinceMs + lingerMs, endMs) - clock.monotonicMs();
      if (leftMs <= 0) return;
      await delay(leftMs);
      await hasReadAll();
      if (begun === this.#begun) continue;
      begun = this.#begun;
      quietSinceMs = clock.monotonicMs();
    }
  }

  close(): void {
    this.#listener.close();
    this.#reader.close();
  }

  #begin(response: HttpResponse, request: HttpRequest, routed: Routed): HttpExchange {
    this.#begun++;
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
      connection: this.#clients.connection,
    });
    if (this.#options.tracing !== undefined)
      exchange.span = spanOf(this.#options.tracing, request, routed);
    exchange.headOnly = routed.headOnly ?? false;
    if (exchange.isV1) beginV1(exchange, request);
    else if (routed.conversion !== undefined) {
      const { apiKey } = readV1Head(request, () => {});
      const contentType = request.getHeader("content-type");
      exchange.body.conversion = conversionFor({ kind: routed.conversion, apiKey, contentType });
      exchange.body.layers |= Layer.Form | Layer.Base64;
    } else {
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
    const isLong = bytesDeclared < 0 || bytesDeclared > EXPECTED_BYTES_MIN;
    if (this.#clients.expects(request, { isRead: everyLine, isLong }))
      this.#continueIfAsked(response, request);
    const framing = framingOf(request, bytesDeclared, everyLine);
    if (framing !== "certain") exchange.hasUncertainEnd = true;
    const problem =
      typeof framing === "object"
        ? framing
        : (problemOfRoute(exchange.body, routed) ?? this.#problemAtHead(exchange));
    if (problem !== undefined) exchange.body.discard(problem);
    if (routed.verdict !== undefined) exchange.body.discard(routed.verdict);
    return exchange;
  }

  /**
   * Sends a 100 for spellings of `100-continue` that uWS does not recognize. Unknown expectations
   * are ignored (RFC 9110, section 10.1.1).
   */
  #continueIfAsked(response: HttpResponse, request: HttpRequest): void {
    const { connection, certificate } = this.#options;
    if (request.getHeader("expect") === CONTINUE) return;
    const expectations: string[] = [];
    request.forEach((name, value) => {
      if (name === "expect") expectations.push(...value.toLowerCase().split(","));
    });
    if (expectations.some((expectation) => expectation.trim() === CONTINUE))
      connection.sendContinue(response, certificate !== undefined);
  }

  #takesNoChunks(senderAddress: string): boolean {
    const { chunks, chunkSenders } = this.#shared;
    return chunks.isOver || chunkSenders.isBarred(senderAddress);
  }

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
    // A large body is checked while it arrives, because other requests may end before then.
    if (!admission.tryTake(0, 0) && !this.#reader.makeRoom(body, admission.lacking(0, 0)))
      return problemOf("overloaded");
    const code = refusal?.(body.bytesDeclared);
    return code === undefined ? undefined : problemOf(code);
  }

  #preflight(response: HttpResponse, request: HttpRequest, routed: RoutedPreflight): void {
    const framing = framingOf(request, bytesDeclaredIn(request.getHeader("content-length")), true);
    if (typeof framing === "object") {
      this.#begin(response, request, { ...routed, verdict: framing }).hasUncertainEnd = true;
      return;
    }
    // Without this call, the connection's next request would count as its first one.
    this.#clients.of(response, request);
    const { allow, label } = routed;
    const origin = request.getHeader("origin");
    const requestedHeaders = request.getHeader("access-control-request-headers");
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      const { metrics, reply } = this.#shared;
      if (!isGone)
        response.cork(() => reply.preflight(response, { origin, requestedHeaders, allow }));
      metrics.requestFinished(label, 200, 0, 0);
    });
  }
}

/** Waits for two iterations, because the current one may already have polled the sockets. */
async function hasReadAll(): Promise<void> {
  await turn();
  await turn();
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
    reply: new ReplyWriter({ random: options.random, outageMs: options.outageMs ?? (() => 0) }),
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

function spanOf(tracing: Tracing, request: HttpRequest, { label, path }: Routed) {
  return tracing.begin({
    traceparent: request.getHeader("traceparent"),
    method: request.getCaseSensitiveMethod(),
    path,
    isRoute: label !== "other",
  });
}

function beginV1(exchange: HttpExchange, request: HttpRequest): void {
  exchange.v1 = readV1Head(request, (text, hasRetry) => exchange.answerResults(text, hasRetry));
  exchange.body.layers |= Layer.Form | Layer.Base64;
}

function problemOfRoute(
  { queryData }: { readonly queryData: string },
  { verdict, isGet = false }: Routed,
): Problem | undefined {
  if (isGet && queryData === "") return NOTHING_SENT;
  return verdict !== undefined && "code" in verdict ? verdict : undefined;
}

function bytesDeclaredIn(contentLength: string): number {
  const bytes = contentLength === "" ? -1 : Number(contentLength);
  return Number.isSafeInteger(bytes) ? bytes : -1;
}
