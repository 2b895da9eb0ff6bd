// The public port: begins each request, rejects a request by its head if its body is not needed for
// the decision, listens and drains. Does not handle events: the intake processes bodies, and the
// exchange writes answers. The router finds the handler of a path.

import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import { bodyTooLarge, problemOf, unsupportedEncoding } from "../body/body-problems.ts";
import { BodyReader } from "../body/body-reader.ts";
import { ChunkSenders, ChunkTurns } from "../body/chunk-turns.ts";
import { GrowingBodies } from "../body/growing-bodies.ts";
import { Layer } from "../body/payload-form.ts";
import type { QuickInflater } from "../body/quick-inflation.ts";
import type { Admission } from "../intake/admission.ts";
import type { PassThrough } from "../upstream/pass-through.ts";
import { passerOf } from "../upstream/passer.ts";
import { signatureMs } from "./certificate.ts";
import { AddressSource, type AddressSourceConfig } from "./client/address-source.ts";
import type { ConnectionAddon } from "./client/connection-id.ts";
import type { ConnectionLimits } from "./client/connection-limits.ts";
import { handshakesPerTurn } from "./client/new-connections.ts";
import { UnreadAnswers } from "./client/unread-answers.ts";
import { conversionFor } from "./conversion/conversions.ts";
import { ANSWERS_AT_ONCE_MAX, HttpExchange } from "./exchange.ts";
import type { Clock, ExchangeShared, HttpMetrics } from "./exchange-shared.ts";
import { framingOf } from "./framing.ts";
import { type CertificateFiles, Listener, type PortSharing } from "./listener.ts";
import { LongAnswers } from "./long-answers.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import type { Intake, Peek } from "./port.ts";
import { readQuery } from "./query.ts";
import { type AwayMs, ReplyWriter } from "./reply.ts";
import { type Routed, type RoutedPreflight, Router } from "./router.ts";
import { isSdkRoute } from "./sdk-requests.ts";
import type { HttpRequest, HttpResponse } from "./uws.ts";
import { isV1Encoding, readV1Head } from "./v1-head.ts";

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
  /** Inflates small gzip bodies; if undefined, node:zlib inflates them, which takes longer. */
  readonly inflater?: QuickInflater | undefined;
  /** Finds the project and lane in a body's first bytes; if undefined, bodies have no hints. */
  readonly peek?: Peek | undefined;
  readonly log: Pick<Log, "error">;
  readonly clock: Clock;
  /** Returns the CPU time of this thread in milliseconds. Default: `clock.monotonicMs`. */
  readonly workMs?: (() => number) | undefined;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /**
   * Returns the code to refuse a request with before its body is read, if any. `requestBytes` is
   * the declared length of the body.
   */
  readonly refusal?: (requestBytes: number) => ErrorCode | undefined;
  /** Returns how long the store has been away; by default always 0. */
  readonly awayMs?: AwayMs;
  /**
   * Functions of the connection addon. With the addon the client's address is read once per
   * connection, without the addon once per request. If a function is absent, the features that need
   * it are disabled.
   */
  readonly connection?:
    | { [Part in keyof ConnectionAddon]?: ConnectionAddon[Part] | undefined }
    | undefined;
  /** The scripts that pages load from this server; undefined for no scripts. */
  readonly files?: StaticFiles | undefined;
  /** Forwards non-event requests to the upstream; if undefined, this server answers them. */
  readonly passThrough?: PassThrough | undefined;
  /** The files of the TLS certificate; undefined for a port without TLS. */
  readonly certificate?: CertificateFiles | undefined;
}

/**
 * Milliseconds without a new request after which a drain continues. A client that has just received
 * an answer may send its next request on the same connection: this wait lets that request get an
 * answer instead of a reset. Every answer during a drain ends its connection, so each client sends
 * at most one more request.
 */
const lingerMs = 100;
const lingerMsMax = 2_000;

/**
 * Length in bytes above which a body counts as long. Some clients send `Expect` only with long
 * bodies: curl from 1 KiB on, others from larger sizes on.
 */
const EXPECTED_BYTES_MIN = 1_023;
const CONTINUE = "100-continue";

const NOTHING_SENT: Problem = {
  code: "empty_body",
  detail:
    "A GET must have its events in the query, as data=...: add them, or send them in the body of a POST",
};

export class HttpServer {
  /** Counts open connections, their maximum, and those closed because of a limit. */
  readonly connections: ConnectionLimits;
  /** Tracks unread answers; undefined without the addon. */
  readonly unread: UnreadAnswers | undefined;
  readonly #options: HttpServerOptions;
  readonly #shared: ExchangeShared;
  readonly #reader: BodyReader;
  readonly #clients: AddressSource;
  readonly #listener: Listener;
  /** Number of requests begun since the start. */
  #begun = 0;

  constructor(options: HttpServerOptions) {
    const { config, connection, files, log } = options;
    this.#options = options;
    this.unread = unreadOf(options);
    this.#shared = sharedOf(options, this.unread);
    this.#reader = new BodyReader({
      ...config,
      growing: this.#shared.growing,
      chunks: this.#shared.chunks,
      intake: options.intake,
      inflater: options.inflater,
      log,
      monotonicMs: () => options.clock.monotonicMs(),
    });
    const { connectionId } = connection ?? {};
    this.#clients = new AddressSource(config, { connectionId, unread: this.unread, log });
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
      (socket) => this.unread?.limit(socket),
    );
  }

  /** Returns the number of requests begun and not yet answered. */
  inflight(): number {
    return this.#shared.inflight;
  }

  /**
   * Starts to listen, for port 0 on any free port, and returns the port. `sharing` is `alone` by
   * default. Rejects with an Error that has the reason.
   */
  listen(host: string, port: number, sharing: PortSharing = "alone"): Promise<number> {
    return this.#listener.listen(host, port, sharing);
  }

  /**
   * Serves new connections with the current pair in the certificate's files. If the files do not
   * contain a pair, throws and changes nothing.
   */
  renewCertificate(): void {
    this.#listener.renewCertificate();
    this.#measureHandshakes();
  }

  /**
   * Stops listening. Event requests that still arrive on open connections are answered 503
   * `draining`, and all other requests as usual. First waits until no request has arrived for
   * `lingerMs`, at most `lingerMsMax` in total. Then waits until no request is in flight or has
   * arrived unread, at most `timeoutMs` in total. Resolves to the number of requests still in
   * flight.
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
    for (let begun = -1; begun !== this.#begun; ) {
      begun = this.#begun;
      const leftMs = endMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      await delay(Math.min(lingerMs, leftMs));
      await hasReadAll();
    }
  }

  /** Drops all connections, and stops the work for them. */
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
   * Sends 100 (Continue) if the client expects it in a spelling other than `100-continue`. uWS
   * itself handles that spelling. Ignores unknown expectations. RFC 9110, section 10.1.1.
   */
  #continueIfAsked(response: HttpResponse, request: HttpRequest): void {
    const { connection, certificate } = this.#options;
    if (request.getHeader("expect") === CONTINUE) return;
    const expectations: string[] = [];
    request.forEach((name, value) => {
      if (name === "expect") expectations.push(...value.toLowerCase().split(","));
    });
    if (expectations.some((expectation) => expectation.trim() === CONTINUE))
      connection?.sendContinue?.(response, certificate !== undefined);
  }

  #takesNoChunks(senderAddress: string): boolean {
    const { chunks, chunkSenders } = this.#shared;
    return chunks.isOver || chunkSenders.isBarred(senderAddress);
  }

  /** Returns the problem for which the body is discarded, if the head shows one. */
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
    // Checks only whether there is any room. Whether a larger body fits shows as it arrives,
    // because other requests may have ended or been evicted by then.
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
    // The address is not used here. Without this call the next request would be mistaken for the
    // first one of the connection.
    this.#clients.of(response, request);
    const { allow, label } = routed;
    const origin = request.getHeader("origin");
    const requestedHeaders = request.getHeader("access-control-request-headers");
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    // Defers the answer to a later event loop iteration, like all answers to requests with an
    // uncertain end.
    setImmediate(() => {
      const { metrics, reply } = this.#shared;
      if (!isGone)
        response.cork(() => reply.preflight(response, { origin, requestedHeaders, allow }));
      metrics.requestFinished(label, 200, 0, 0);
    });
  }
}

/**
 * Waits until all connections and requests that have already arrived are read. If a process did not
 * get CPU time, its timers are due before it polls its sockets. Without this wait, a drain would
 * then close sockets with unread requests. Waits two event loop iterations, because the first one
 * may have polled already.
 */
async function hasReadAll(): Promise<void> {
  await turn();
  await turn();
}

function unreadOf({ connection, clock }: HttpServerOptions): UnreadAnswers | undefined {
  const { readSendQueue, resetOnClose, limitSends, keepOpen } = connection ?? {};
  return readSendQueue && resetOnClose && limitSends && keepOpen
    ? new UnreadAnswers({
        addon: { readSendQueue, resetOnClose, limitSends, keepOpen },
        monotonicMs: () => clock.monotonicMs(),
      })
    : undefined;
}

function sharedOf(
  { admission, clock, log, metrics, ...options }: HttpServerOptions,
  unread: UnreadAnswers | undefined,
): ExchangeShared {
  const monotonicMs = (): number => clock.monotonicMs();
  return {
    admission,
    clock,
    log,
    metrics,
    clientWarnings: options.clientWarnings,
    reply: new ReplyWriter({ random: options.random, awayMs: options.awayMs ?? (() => 0) }),
    growing: new GrowingBodies(),
    chunks: new ChunkTurns({ nextTurn: setImmediate, workMs: options.workMs ?? monotonicMs }),
    chunkSenders: new ChunkSenders(monotonicMs),
    long: new LongAnswers({ admission, monotonicMs }),
    peek: options.peek,
    unread,
    inflight: 0,
    draining: false,
    atOnce: new TurnBudget(ANSWERS_AT_ONCE_MAX),
    idle: () => {},
  };
}

/**
 * Prepares a request of the newer protocol: its query is not read, and no form or base64 around its
 * body is decoded.
 */
function beginV1(exchange: HttpExchange, request: HttpRequest): void {
  exchange.v1 = readV1Head(request, (text, hasRetry) => exchange.answerResults(text, hasRetry));
  exchange.body.layers |= Layer.Form | Layer.Base64;
}

/**
 * Returns the problem for which a request is refused by its path, method and query alone, even if
 * there is room and the store accepts events.
 */
function problemOfRoute(
  { queryData }: { readonly queryData: string },
  { verdict, isGet = false }: Routed,
): Problem | undefined {
  if (isGet && queryData === "") return NOTHING_SENT;
  return verdict !== undefined && "code" in verdict ? verdict : undefined;
}

/**
 * Returns Content-Length as a number, or -1 if it is absent or not a number. uWS refuses such a
 * length itself. NaN would let any body count as a small one.
 */
function bytesDeclaredIn(contentLength: string): number {
  const bytes = contentLength === "" ? -1 : Number(contentLength);
  return Number.isSafeInteger(bytes) ? bytes : -1;
}
