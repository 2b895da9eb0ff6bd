// The public endpoints: routes, refusals before the body is read, listening and draining. Knows nothing of events;
// bodies go to the intake, answers come back through the exchange.

import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { App, type HttpRequest, type HttpResponse, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";
import { createServer } from "node:net";
import type { ErrorCode, Problem } from "../errors.ts";
import type { Admission, Intake } from "../types.ts";
import { bodyTooLarge, createBodyReader, problemOf } from "./body.ts";
import { createAddressReader } from "./client-address.ts";
import { createConnectionAddresses } from "./connection-addresses.ts";
import type { ConnectionId } from "./connection-id.ts";
import {
  type Clock,
  type ExchangeShared,
  HttpExchange,
  type HttpLog,
  type HttpMetrics,
  type RouteLabel,
} from "./exchange.ts";
import { ReplyWriter } from "./reply.ts";
import { listenExclusively, listenShared } from "./uws.ts";

export interface HttpServerOptions {
  readonly config: {
    readonly bodyBytesMax: number;
    readonly inflatedBytesMax: number;
    readonly requestTimeoutMs: number;
    readonly recordIp: boolean;
  };
  readonly intake: Intake;
  readonly admission: Admission;
  readonly metrics: HttpMetrics;
  readonly log: HttpLog;
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** The code to refuse every request with for now, before its body is read. */
  readonly refusal?: () => ErrorCode | undefined;
  /** With it a client's address is read once a connection, else once a request. */
  readonly connectionId?: ConnectionId | undefined;
}

/**
 * `alone`: nobody else may have the port, now or later. `first`: nobody else may have it now, and the processes that come as
 * `joining` listen on it too.
 */
export type PortSharing = "alone" | "first" | "joining";

export interface HttpServer {
  /** The port, 0 being any free one, or an Error that says what is in the way. `sharing` is `alone` unless given. */
  listen(host: string, port: number, sharing?: PortSharing): Promise<number>;
  /**
   * Stops listening; what still comes on open connections is answered 503 `draining`. Resolves to the requests
   * still in flight: 0 as soon as there are none, else what is left after `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<number>;
  /** Requests begun and not yet answered. */
  inflight(): number;
  /** Drops all connections. */
  close(): void;
}

const endpoints = { "/capture": "capture", "/capture/": "capture", "/batch": "batch", "/batch/": "batch" } as const;

const NOT_FOUND: Problem = { code: "not_found", detail: "Events go to /capture/ or /batch/" };
const METHOD_NOT_ALLOWED: Problem = { code: "method_not_allowed", detail: "Send events with POST" };

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config, admission, clock, metrics } = options;
  const shared: ExchangeShared = {
    admission,
    clock,
    log: options.log,
    metrics,
    reply: new ReplyWriter(options.random),
    inflight: 0,
    draining: false,
    idle: () => {},
  };
  const reader = createBodyReader({
    ...config,
    intake: options.intake,
    log: options.log,
    monotonicMs: () => clock.monotonicMs(),
  });
  const app = App();
  const clientAddress = config.recordIp ? addressSource(app, options.connectionId) : () => "";
  let listening: us_listen_socket | undefined;

  for (const [path, label] of Object.entries(endpoints)) {
    app.post(path, (response, request) => void begin(response, request, label));
    app.options(path, (response, request) => preflight(response, request, label));
    app.any(path, (response, request) => {
      const exchange = begin(response, request, label);
      exchange.headOnly = request.getMethod() === "head";
      refuse(exchange, METHOD_NOT_ALLOWED);
    });
  }
  app.any("/*", (response, request) => {
    const exchange = begin(response, request, "other");
    exchange.headOnly = request.getMethod() === "head";
  });

  return { listen, drain, inflight: () => shared.inflight, close };

  function begin(response: HttpResponse, request: HttpRequest, label: RouteLabel): HttpExchange {
    const declared = request.getHeader("content-length");
    const exchange = new HttpExchange(shared, response, {
      label,
      origin: request.getHeader("origin"),
      contentEncoding: request.getHeader("content-encoding"),
      bytesDeclared: declared === "" ? -1 : Number(declared),
      clientAddress: clientAddress(response),
    });
    response.onAborted(() => exchange.abort());
    response.onData((chunk, isLast) => reader.chunk(exchange, chunk, isLast));
    const problem = problemAtHead(exchange);
    if (problem !== undefined) refuse(exchange, problem);
    return exchange;
  }

  /** Why not to keep the body at all. */
  function problemAtHead(exchange: HttpExchange): Problem | undefined {
    if (exchange.label === "other") return NOT_FOUND;
    if (shared.draining) return problemOf("draining");
    if (exchange.bytesDeclared > config.bodyBytesMax) return bodyTooLarge(config.bodyBytesMax);
    const free = admission.bytesMax - admission.bytes;
    if (free <= 0 || exchange.bytesDeclared > free) return problemOf("overloaded");
    const code = options.refusal?.();
    return code === undefined ? undefined : problemOf(code);
  }

  function refuse(exchange: HttpExchange, problem: Problem): void {
    reader.refuse(exchange, problem);
  }

  function preflight(response: HttpResponse, request: HttpRequest, label: RouteLabel): void {
    const origin = request.getHeader("origin");
    shared.reply.preflight(response, origin, request.getHeader("access-control-request-headers"));
    metrics.requestFinished(label, 200, 0, 0);
  }

  async function listen(host: string, port: number, sharing: PortSharing = "alone"): Promise<number> {
    listening = listenAs(sharing, host, port);
    if (listening === undefined) {
      throw new Error(`Listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    return us_socket_local_port(listening);
  }

  function listenAs(sharing: PortSharing, host: string, port: number): us_listen_socket | undefined {
    if (sharing === "joining") return listenShared(app, host, port);
    const alone = listenExclusively(app, host, port);
    if (alone === undefined || sharing === "alone") return alone;
    // That nobody has the port is known now, and its number, so it can be let go for one that is shared.
    const portFound = us_socket_local_port(alone);
    us_listen_socket_close(alone);
    return listenShared(app, host, portFound);
  }

  function drain(timeoutMs: number): Promise<number> {
    shared.draining = true;
    stopListening();
    if (shared.inflight === 0) return Promise.resolve(0);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(shared.inflight), timeoutMs);
      shared.idle = () => {
        clearTimeout(timer);
        resolve(0);
      };
    });
  }

  function close(): void {
    stopListening();
    app.close();
  }

  function stopListening(): void {
    if (listening !== undefined) us_listen_socket_close(listening);
    listening = undefined;
  }
}

/** What tells the address of a response's client. Called before the app listens: it is to see every connection open. */
function addressSource(app: TemplatedApp, connectionId: ConnectionId | undefined): (response: HttpResponse) => string {
  const text = createAddressReader();
  const read = (response: HttpResponse) => text(response.getRemoteAddress());
  if (connectionId === undefined) return read;
  const addresses = createConnectionAddresses(connectionId, read);
  app.filter(addresses.follow);
  return addresses.of;
}

/** Asks Node for the reason that uWS keeps to itself. */
function whyNot(host: string, port: number): Promise<string> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(reasons[error.code ?? ""] ?? error.message));
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close(() => resolve("refused"));
    });
  });
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken",
  EACCES: "not permitted",
  EADDRNOTAVAIL: "this host does not have the address",
  ENOTFOUND: "the name is not known",
};
