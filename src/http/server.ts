// The public endpoints: routes, refusals before the body is read, listening and draining. Knows
// nothing of events; bodies go to the intake, answers come back through the exchange.

import { setTimeout as delay } from "node:timers/promises";
import type { ErrorCode, Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Admission, ClientWarningTaker, EarlyLook, Intake, Route } from "../base/types.ts";
import { createBodyReader } from "./body/body.ts";
import { bodyTooLarge, problemOf, unsupportedEncoding } from "./body/body-problems.ts";
import { ChunkSenders } from "./body/chunk-senders.ts";
import { ChunkTurns } from "./body/chunk-turns.ts";
import { GrowingBodies } from "./body/growing-bodies.ts";
import { Layer } from "./body/payload-form.ts";
import { TurnBudget } from "./body/turn-budget.ts";
import { type AddressSourceConfig, createAddressSource } from "./client/address-source.ts";
import type { ConnectionId } from "./client/connection-id.ts";
import type { ConnectionLimits } from "./client/connection-limits.ts";
import { endpoints, withOneSlash } from "./endpoints.ts";
import { ANSWERS_AT_ONCE_MAX, HttpExchange, type RouteLabel } from "./exchange.ts";
import type { Clock, ExchangeShared, HttpMetrics } from "./exchange-shared.ts";
import { framingOf } from "./framing.ts";
import { type CertificateFiles, createListener, type PortSharing } from "./listener.ts";
import { LongAnswers } from "./long-answers.ts";
import { namedPath } from "./named-path.ts";
import { NearPaths } from "./near-path.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import { readQuery } from "./query.ts";
import { allowedMethods, methodsAt, ReplyWriter } from "./reply.ts";
import { createSdkRequests, isSdkRoute, type SdkRoute, sdkPaths } from "./sdk-requests.ts";
import type { HttpRequest, HttpResponse, TemplatedApp } from "./uws.ts";
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
  readonly look?: EarlyLook | undefined;
  readonly log: Pick<Log, "error">;
  readonly clock: Clock;
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

export interface HttpServer {
  /**
   * The port, 0 being any free one, or an Error that says what is in the way. `sharing` is `alone`
   * unless given.
   */
  listen(host: string, port: number, sharing?: PortSharing): Promise<number>;
  /**
   * Stops listening; events that still come on open connections are answered 503 `draining`, and
   * all else as always. Resolves to the requests still in flight: 0 when there are none, after a
   * moment for those on their way, else what is left after `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<number>;
  /** Requests begun and not yet answered. */
  inflight(): number;
  /** Connections open, how many may be, and how many were closed because they were one too many. */
  readonly connections: ConnectionLimits;
  /**
   * Shows new connections what the certificate's files hold now. Throws when they do not do; then
   * nothing has changed.
   */
  renewCertificate(): void;
  /** Drops all connections. */
  close(): void;
}

/**
 * Clients that had their last answer before the drain send the next request on the same connection:
 * they get an answer, not a reset.
 */
const lingerMsMax = 100;

const routes: ReadonlyMap<string, Route> = new Map(endpoints);
/** Of these one is suggested where there is nothing. */
const eventPaths = endpoints.map(([path]) => path);
const otherPaths = sdkPaths.filter((path) => !path.includes("{"));
const NOTHING_SENT: Problem = {
  code: "empty_body",
  detail: "A GET has its events in the query, as data=...: send them so, or with POST in the body",
};
const METHOD_NOT_ALLOWED: Problem = { code: "method_not_allowed", detail: "Send events with POST" };

/** What is known of a request by its path and method alone. */
interface Routed {
  readonly label: RouteLabel;
  /** As people who watch may see it. */
  readonly path: string;
  /** Why it is refused whatever else it brings, however the store is. */
  readonly problem?: Problem;
  /** Its events can only be in the query. */
  readonly isGet?: boolean;
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config, admission, clock, metrics } = options;
  const shared: ExchangeShared = {
    admission,
    clock,
    log: options.log,
    metrics,
    clientWarnings: options.clientWarnings,
    reply: new ReplyWriter(options.random),
    growing: new GrowingBodies(),
    chunks: new ChunkTurns(setImmediate),
    chunkSenders: new ChunkSenders(() => clock.monotonicMs()),
    long: new LongAnswers({ admission, monotonicMs: () => clock.monotonicMs() }),
    look: options.look,
    inflight: 0,
    draining: false,
    atOnce: new TurnBudget(ANSWERS_AT_ONCE_MAX),
    idle: () => {},
  };
  const nearPaths = new NearPaths();
  const reader = createBodyReader({
    ...config,
    growing: shared.growing,
    chunks: shared.chunks,
    intake: options.intake,
    log: options.log,
    monotonicMs: () => clock.monotonicMs(),
  });
  const sdk = createSdkRequests({ files: options.files, nearPaths, wallMs: () => clock.wallMs() });
  const clients = createAddressSource(config, {
    connectionId: options.connectionId,
    log: options.log,
  });
  const listener = createListener(prepare, options.certificate);

  return {
    listen,
    drain,
    inflight: () => shared.inflight,
    connections: clients.limits,
    renewCertificate: () => listener.renewCertificate(),
    close: () => listener.close(),
  };

  function prepare(app: TemplatedApp): void {
    app.filter(clients.follow);
    for (const [path, label] of endpoints) {
      const posted: Routed = { label, path };
      const got: Routed = { label, path, isGet: true };
      const refused: Routed = { label, path, problem: METHOD_NOT_ALLOWED };
      app.post(path, (response, request) => void begin(response, request, posted));
      if (label !== "v1") app.get(path, (response, request) => void begin(response, request, got));
      const asked = { label, path, allow: methodsAt(label === "v1") };
      app.options(path, (response, request) => preflight(response, request, asked));
      app.any(path, (response, request) => {
        begin(response, request, refused).headOnly = request.getMethod() === "head";
      });
    }
    app.any("/*", elsewhere);
  }

  function begin(response: HttpResponse, request: HttpRequest, routed: Routed): HttpExchange {
    const bytesDeclared = bytesDeclaredIn(request.getHeader("content-length"));
    const senderAddress = clients.of(response, request);
    const exchange = new HttpExchange(shared, response, {
      label: routed.label,
      path: routed.path,
      origin: request.getHeader("origin"),
      contentEncoding: request.getHeader("content-encoding"),
      bytesDeclared,
      clientAddress: config.recordIp ? senderAddress : "",
      senderAddress,
    });
    if (exchange.isV1) beginV1(exchange, request);
    else {
      const query = request.getQuery();
      if (query !== "" && query !== undefined) readQuery(query, exchange);
    }
    response.onAborted(() => exchange.abort());
    if (
      bytesDeclared < 0 &&
      request.getHeader("transfer-encoding") !== "" &&
      takesNoChunks(senderAddress)
    ) {
      exchange.turnAway();
      return exchange;
    }
    response.onData((chunk, isLast) => {
      exchange.isBeingRead = isLast;
      reader.chunk(exchange, chunk, isLast);
      exchange.isBeingRead = false;
    });
    const everyLine = clients.isReadByOthers(request);
    exchange.userAgent = clients.agentOf(request, everyLine);
    const framing = framingOf(request, bytesDeclared, everyLine);
    if (framing !== "sure") exchange.endsInDoubt = true;
    const problem =
      typeof framing === "object"
        ? framing
        : (problemOfRoute(exchange, routed) ?? problemAtHead(exchange));
    if (problem !== undefined) refuse(exchange, problem);
    return exchange;
  }

  function takesNoChunks(senderAddress: string): boolean {
    return shared.chunks.isOver || shared.chunkSenders.isBarred(senderAddress);
  }

  /** A request at a path that takes events, found only after slashes before it were left out. */
  function takeAt(
    response: HttpResponse,
    request: HttpRequest,
    at: { readonly label: Route; readonly path: string },
  ): void {
    const method = request.getMethod();
    const isV1 = at.label === "v1";
    if (method === "options") preflight(response, request, { ...at, allow: methodsAt(isV1) });
    else if (method === "post") begin(response, request, at);
    else if (method === "get" && !isV1) begin(response, request, { ...at, isGet: true });
    else
      begin(response, request, { ...at, problem: METHOD_NOT_ALLOWED }).headOnly = method === "head";
  }

  /** A request at a path that takes no events, unless it has more than one slash before it. */
  function elsewhere(response: HttpResponse, request: HttpRequest): void {
    const url = withOneSlash(request.getUrl());
    const route = routes.get(url);
    if (route !== undefined) {
      takeAt(response, request, { label: route, path: url });
      return;
    }
    const found = sdk.routeOf(url);
    if (request.getMethod() === "options") {
      const { label, path, allow } = found ?? {
        label: "other",
        path: namedPath(url),
        allow: allowedMethods,
      };
      preflight(response, request, { label, path, allow });
      return;
    }
    const exchange =
      found === undefined
        ? beginNowhere(response, request, request.getUrl())
        : beginFound(response, request, found);
    exchange.headOnly = request.getMethod() === "head";
  }

  function beginNowhere(response: HttpResponse, request: HttpRequest, url: string): HttpExchange {
    const path = namedPath(url);
    return begin(response, request, {
      label: "other",
      path,
      problem: notFound(path, url, nearPaths),
    });
  }

  function beginFound(response: HttpResponse, request: HttpRequest, found: SdkRoute): HttpExchange {
    const { label, path } = found;
    const answer = found.answerTo(request);
    if ("code" in answer) return begin(response, request, { label, path, problem: answer });
    const exchange = begin(response, request, { label, path });
    reader.drop(exchange, answer);
    return exchange;
  }

  /** Its query means nothing, and neither do forms around its body. */
  function beginV1(exchange: HttpExchange, request: HttpRequest): void {
    const answerResults = (text: Buffer, hasRetry: boolean) =>
      exchange.answerResults(text, hasRetry);
    exchange.v1 = { ...readV1Head(request), answerResults };
    exchange.layers |= Layer.Form | Layer.Base64;
  }

  /** Why it is refused even where there is room, and a store that takes events. */
  function problemOfRoute(
    { queryData }: HttpExchange,
    { problem, isGet = false }: Routed,
  ): Problem | undefined {
    return isGet && queryData === "" ? NOTHING_SENT : problem;
  }

  /** Why not to keep the body at all. */
  function problemAtHead(exchange: HttpExchange): Problem | undefined {
    if (isSdkRoute(exchange.label)) return tooLong(exchange);
    if (shared.draining) return problemOf("draining");
    const lengthy = tooLong(exchange);
    if (lengthy !== undefined) return lengthy;
    if (exchange.isV1 && !isV1Encoding(exchange.contentEncoding)) return unsupportedEncoding;
    // Whether a larger one has room shows as it arrives: others may be done or give way by then.
    if (!admission.tryTake(0, 0) && !reader.makeRoom(exchange, admission.lacking(0, 0)))
      return problemOf("overloaded");
    const code = options.refusal?.();
    return code === undefined ? undefined : problemOf(code);
  }

  function tooLong(exchange: HttpExchange): Problem | undefined {
    return exchange.bytesDeclared > config.bodyBytesMax
      ? bodyTooLarge(exchange, config.bodyBytesMax)
      : undefined;
  }

  function refuse(exchange: HttpExchange, problem: Problem): void {
    reader.refuse(exchange, problem);
  }

  function preflight(
    response: HttpResponse,
    request: HttpRequest,
    routed: Routed & { readonly allow: string },
  ): void {
    const framing = framingOf(request, bytesDeclaredIn(request.getHeader("content-length")), true);
    if (typeof framing === "object") {
      begin(response, request, { ...routed, problem: framing }).endsInDoubt = true;
      return;
    }
    // Not for its address: what is asked of a connection's first request is not to be asked of a
    // later one.
    clients.of(response, request);
    const origin = request.getHeader("origin");
    const requestedHeaders = request.getHeader("access-control-request-headers");
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    // Put off to a turn of its own, as every answer to a request whose end nobody says.
    setImmediate(() => {
      if (!isGone)
        response.cork(() =>
          shared.reply.preflight(response, { origin, requestedHeaders, allow: routed.allow }),
        );
      metrics.requestFinished(routed.label, 200, 0, 0);
    });
  }

  function listen(host: string, port: number, sharing: PortSharing = "alone"): Promise<number> {
    return listener.listen(host, port, sharing);
  }

  async function drain(timeoutMs: number): Promise<number> {
    shared.draining = true;
    listener.stop();
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
}

/** uWS refuses what is no number; were it not to, NaN would make any body a small one. */
function bytesDeclaredIn(contentLength: string): number {
  const bytes = contentLength === "" ? -1 : Number(contentLength);
  return Number.isSafeInteger(bytes) ? bytes : -1;
}

/** `named`: the path as it may be shown. */
function notFound(named: string, path: string, nearPaths: NearPaths): Problem {
  const near = nearPaths.find(path, eventPaths, otherPaths);
  const meant = near === undefined ? "" : `; ${near} is meant?`;
  return {
    code: "not_found",
    detail: `There is nothing at ${named}: events go to /capture/ or /batch/${meant}`,
  };
}
