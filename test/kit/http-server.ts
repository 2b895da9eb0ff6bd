// The real uWebSockets.js server with a test intake. The intake records bodies, and answers
// immediately, later or never.

import { createConnection, type Socket } from "node:net";
import { afterEach, expect } from "vitest";
import type { QuickInflater } from "../../src/gateway/body/inflate.ts";
import {
  type ConnectionId,
  loadConnectionAddon,
} from "../../src/gateway/http/client/connection-id.ts";
import type { CertificateFiles } from "../../src/gateway/http/listener.ts";
import type { StaticFiles } from "../../src/gateway/http/pages/static-files.ts";
import type { Exchange, IntakeReport, Peek } from "../../src/gateway/http/port.ts";
import { HttpServer } from "../../src/gateway/http/server.ts";
import { Admission } from "../../src/gateway/intake/admission.ts";
import type { PassThrough } from "../../src/gateway/upstream/pass-through.ts";
import { networksOf } from "../../src/platform/base/addresses.ts";
import type { ErrorCode } from "../../src/platform/base/errors.ts";
import { loadAddon } from "../../src/records/native.ts";

export const bodyBytesMax = 100_000;
export const inflatedBytesMax = 1_000_000;
export const inflightBytesMax = 8_000_000;
const WAIT_MS = 20_000;

export const oneStored: IntakeReport = {
  accepted: 1,
  dropped: 0,
  filtered: 0,
  errors: [],
  errorsTotal: 0,
  warnings: [],
  warningsTotal: 0,
};

interface Taken {
  readonly exchange: Exchange;
  readonly text: string;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly http: HttpServer;
  readonly admission: Admission;
  readonly taken: Taken[];
  readonly finished: string[];
  readonly aborted: string[];
  readonly logged: object[];
  /** Answers a body. By default, it answers immediately with `oneStored`. */
  answer: (exchange: Exchange, body: Buffer) => Promise<void> | void;
  refusal: ErrorCode | undefined;
}

export interface TestServerConfig {
  readonly bodyBytesMax?: number;
  readonly inflatedBytesMax?: number;
  readonly inflightBytesMax?: number;
  readonly requestTimeoutMs?: number;
  readonly recordIp?: boolean;
  readonly host?: string;
  readonly connectionId?: ConnectionId | undefined;
  readonly trustedProxies?: string;
  readonly proxyProtocol?: boolean;
  readonly connectionsMax?: number;
  readonly addressConnectionsMax?: number;
  readonly certificate?: CertificateFiles;
  /** Default: the inflater of the addon. If it is undefined, node:zlib decompresses all bodies. */
  readonly inflater?: QuickInflater | undefined;
  readonly peek?: Peek | undefined;
  readonly files?: StaticFiles | undefined;
  readonly passThrough?: PassThrough | undefined;
  readonly monotonicMs?: () => number;
}

const addon = loadConnectionAddon();
const open: { server: TestServer; sockets: Socket[] }[] = [];

/** Starts a server, which is closed after the test. Bytes in flight must be released before. */
export async function startTestServer(config: TestServerConfig = {}): Promise<TestServer> {
  const admission = new Admission(config.inflightBytesMax ?? inflightBytesMax);
  const taken: Taken[] = [];
  const finished: string[] = [];
  const aborted: string[] = [];
  const logged: object[] = [];
  const http = new HttpServer({
    config: {
      bodyBytesMax: config.bodyBytesMax ?? bodyBytesMax,
      inflatedBytesMax: config.inflatedBytesMax ?? inflatedBytesMax,
      requestTimeoutMs: config.requestTimeoutMs ?? 5_000,
      recordIp: config.recordIp ?? false,
      trustedProxies: networksOf(config.trustedProxies ?? ""),
      proxyProtocol: config.proxyProtocol,
      connectionsMax: config.connectionsMax,
      addressConnectionsMax: config.addressConnectionsMax,
    },
    intake: (exchange, { bytes }) => {
      taken.push({ exchange, text: bytes.toString() });
      return server.answer(exchange, bytes) ?? undefined;
    },
    admission,
    metrics: {
      requestFinished: (route, status) => void finished.push(`${route} ${status}`),
      problemAnswered: () => {},
      requestAborted: (phase) => void aborted.push(phase),
    },
    log: { error: (fields) => void logged.push(fields) },
    clock: {
      wallMs: () => Date.now(),
      monotonicMs: config.monotonicMs ?? (() => performance.now()),
    },
    random: Math.random,
    refusal: () => server.refusal,
    inflater: "inflater" in config ? config.inflater : new (loadAddon().Inflater)(),
    peek: config.peek,
    connection: { ...addon, connectionId: config.connectionId ?? addon.connectionId },
    certificate: config.certificate,
    files: config.files,
    passThrough: config.passThrough,
  });
  const host = config.host ?? "127.0.0.1";
  const port = await http.listen(host, 0);
  const server: TestServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    http,
    admission,
    taken,
    finished,
    aborted,
    logged,
    answer: (exchange) => exchange.answerStored(oneStored),
    refusal: undefined,
  };
  open.push({ server, sockets: [] });
  return server;
}

afterEach(async () => {
  for (const { server, sockets } of open.splice(0)) {
    try {
      await until(() => server.http.inflight() === 0, "every request is done");
      expect(server.admission.bytes).toBe(0);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.http.close();
    }
  }
});

export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!condition()) {
    if (performance.now() > deadlineMs)
      throw new Error(`Wait until ${what}: not within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Waits until a draining server no longer listens. This takes two turns of the event loop. */
export async function untilItListensNoMore(): Promise<void> {
  for (let turns = 0; turns < 2; turns++) await new Promise(setImmediate);
}

export interface Reply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface Wire {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  reply(headOnly?: boolean): Promise<Reply>;
  ended(): Promise<void>;
  closed(): boolean;
}

/** Opens a connection. Each write is sent immediately in its own segment. `from` is local. */
export async function connectTo(
  server: TestServer,
  host = "127.0.0.1",
  from?: string,
): Promise<Wire> {
  const own = from === undefined ? {} : { localAddress: from };
  const socket = createConnection({ host, port: server.port, noDelay: true, ...own });
  open.find((entry) => entry.server === server)?.sockets.push(socket);
  let received = Buffer.alloc(0);
  let closed = false;
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
  });
  await new Promise((resolve) => socket.once("connect", resolve));
  return {
    socket,
    write: (bytes) => void socket.write(bytes),
    closed: () => closed,
    ended: () => until(() => closed || socket.readableEnded, "the server closes the connection"),
    async reply(headOnly = false) {
      await until(() => closed || replyIn(received, headOnly) !== undefined, "a reply is here");
      const found = replyIn(received, headOnly);
      if (found === undefined)
        throw new Error(`Read a reply: closed after ${JSON.stringify(received.toString())}`);
      received = received.subarray(found.bytes);
      return found.reply;
    },
  };
}

function replyIn(received: Buffer, headOnly: boolean): { reply: Reply; bytes: number } | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = received
    .subarray(0, headEnd)
    .toString("latin1")
    .split("\r\n");
  const headers = new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(":")).toLowerCase(),
      line.slice(line.indexOf(":") + 1).trim(),
    ]),
  );
  const bodyBytes = headOnly ? 0 : Number(headers.get("content-length") ?? 0);
  const bytes = headEnd + 4 + bodyBytes;
  if (received.length < bytes) return undefined;
  const body = received.subarray(headEnd + 4, bytes).toString();
  return { reply: { status: Number(statusLine.split(" ")[1]), headers, body }, bytes };
}

export async function heldRequest(): Promise<{ server: TestServer; wire: Wire }> {
  const server = await startTestServer();
  server.answer = () => {};
  const wire = await connectTo(server);
  wire.write(post("{}"));
  await until(() => server.taken.length === 1, "it is taken");
  return { server, wire };
}

export function post(
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([head({ "Content-Length": String(bytes.length), ...headers }), bytes]);
}

export function head(headers: Readonly<Record<string, string>>, line = "POST /capture/"): Buffer {
  const lines = Object.entries({ Host: "penstock", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(`${line} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
}

export function codeIn(reply: Reply): unknown {
  return JSON.parse(reply.body).code;
}
