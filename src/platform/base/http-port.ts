// An HTTP port for operators and readers on node:http. The port limits the number of connections,
// the time to receive a request's head, the time in which a client must read an answer, and the
// requests of each connection to one at a time. A new connection beyond the limit replaces the
// oldest one that waits for a complete request or for its client to read: otherwise, a client could
// block health checks with such connections.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import { shownSetting } from "./setting-name.ts";

interface HttpPortOptions {
  /** Answers a request. Must not throw. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly connectionsMax: number;
  readonly purpose: string;
  readonly setting: PortSetting;
  /**
   * Maximum time in milliseconds to receive a request. Also the maximum time during which a
   * connection has unsent bytes. After it, the connection is closed.
   */
  readonly requestMsMax?: number;
}

const headBytesMax = 16_384;
const looksAtLateness = 10;

export class HttpPort {
  readonly #options: HttpPortOptions;
  readonly #server: Server;
  readonly #busy = new WeakSet<Socket>();
  /** The open connections. Those without a request are in the order of their last answer. */
  readonly #sockets = new Set<Socket>();
  /** The number of checks since which a connection has unsent bytes. */
  readonly #unsentChecks = new WeakMap<Socket, number>();
  readonly #checkMs: number;
  #checking: NodeJS.Timeout | undefined;

  constructor(options: HttpPortOptions) {
    this.#options = options;
    const { requestMsMax = 10_000 } = options;
    this.#checkMs = Math.ceil(requestMsMax / looksAtLateness);
    const server = createServer({
      maxHeaderSize: headBytesMax,
      headersTimeout: requestMsMax,
      requestTimeout: requestMsMax,
      connectionsCheckingInterval: this.#checkMs,
      // Without this option, Node itself would answer a request without a Host header.
      requireHostHeader: false,
    });
    server.on("connection", (socket) => this.#open(socket));
    // The port reads no bodies. So it answers a request with "Expect: 100-continue" immediately.
    for (const event of ["request", "checkContinue", "checkExpectation"])
      server.on(event, (request, response) => this.#take(request, response));
    this.#server = server;
  }

  /** Listens, and returns the port. Rejects with an Error that states the cause. */
  listen(host: string, port: number): Promise<number> {
    const { purpose, setting } = this.#options;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        const fault = portFault(error, port, setting);
        reject(
          new Error(`cannot listen on ${host} port ${port} for ${purpose}: ${fault}`, {
            cause: error,
          }),
        );
      };
      server.once("error", failed);
      server.listen(port, host, () => {
        server.off("error", failed);
        this.#checking = setInterval(() => this.#closeUnread(), this.#checkMs).unref();
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  close(): Promise<void> {
    clearInterval(this.#checking);
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #open(socket: Socket): void {
    const sockets = this.#sockets;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("drain", () => this.#unsentChecks.delete(socket));
    if (sockets.size <= this.#options.connectionsMax) return;
    // The new connection is the last one, so it is closed only if all others have a request that is
    // not answered yet.
    for (const one of sockets) {
      if (this.#busy.has(one) && one.writableLength === 0) continue;
      sockets.delete(one);
      one.destroy();
      return;
    }
  }

  #closeUnread(): void {
    const unsent = this.#unsentChecks;
    for (const socket of this.#sockets) {
      const checks = unsent.get(socket) ?? 0;
      if (socket.writableLength === 0) unsent.delete(socket);
      else if (checks < looksAtLateness) unsent.set(socket, checks + 1);
      else socket.destroy();
    }
  }

  /** Answers a request. Rejects pipelined requests, which would queue without a limit. */
  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (this.#busy.has(socket)) return void socket.destroy();
    this.#busy.add(socket);
    response.once("close", () => {
      this.#busy.delete(socket);
      if (this.#sockets.delete(socket)) this.#sockets.add(socket);
    });
    const isOld = request.httpVersionMajor === 1 && request.httpVersionMinor === 0;
    if (request.headers.host === undefined && !isOld)
      response.writeHead(400, { Connection: "close" }).end();
    else this.#options.answer(request, response);
  }
}

export function tryListen(host: string, port: number): Promise<number> {
  const probe = createSocketServer();
  return new Promise((resolve, reject) => {
    probe.once("error", reject);
    probe.listen({ host, port, exclusive: true }, () => {
      const { port: found } = probe.address() as AddressInfo;
      probe.close(() => resolve(found));
    });
  });
}

/** A setting of a port. The setting of its host has the same name with "host" in place of "port". */
export type PortSetting = "port" | "adminPort" | "effectsPort" | "sinkPort";

export function portFault(
  error: NodeJS.ErrnoException,
  port: number,
  setting: PortSetting,
): string {
  const shown = shownSetting(setting);
  const host = shownSetting(setting.replace("port", "host").replace("Port", "Host"));
  switch (error.code) {
    case "EADDRINUSE":
      return `the port is taken. Set ${shown} to another port, or stop the process that uses it; \`ss -ltnp sport = :${port}\` shows it`;
    case "EACCES":
      return `not permitted: set ${shown} to a port of at least 1024, or grant the permission for lower ports`;
    case "EADDRNOTAVAIL":
      return `this host does not have this address: set ${host} to an address of this host`;
    case "ENOTFOUND":
      return `unknown host name: set ${host} to an address of this host`;
    default:
      return error.message;
  }
}
