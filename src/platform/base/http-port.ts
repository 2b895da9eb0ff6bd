// An HTTP port for operators and readers. Limits the connections, the time to receive a request's
// head, and the concurrent requests of a connection to one.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";

interface HttpPortOptions {
  /** Must not throw. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly connectionsMax: number;
  readonly connected?: (socket: Socket) => void;
  readonly purpose: string;
  readonly portName: PortName;
  readonly requestMsMax?: number;
}

const headBytesMax = 16_384;
const looksAtLateness = 10;

export class HttpPort {
  readonly #options: HttpPortOptions;
  readonly #server: Server;
  readonly #busy = new WeakSet<Socket>();

  constructor(options: HttpPortOptions) {
    this.#options = options;
    const { requestMsMax = 10_000, connectionsMax, connected } = options;
    const server = createServer({
      maxHeaderSize: headBytesMax,
      headersTimeout: requestMsMax,
      requestTimeout: requestMsMax,
      connectionsCheckingInterval: Math.ceil(requestMsMax / looksAtLateness),
      // Node would answer a request without a Host header itself.
      requireHostHeader: false,
    });
    server.maxConnections = connectionsMax;
    if (connected !== undefined) server.on("connection", connected);
    // The port reads no bodies, so it answers a request with "Expect: 100-continue" immediately.
    for (const event of ["request", "checkContinue", "checkExpectation"])
      server.on(event, (request, response) => this.#take(request, response));
    this.#server = server;
  }

  /** Returns the port. Rejects with an Error that states the cause. */
  listen(host: string, port: number): Promise<number> {
    const { purpose, portName } = this.#options;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        const fault = portFault(error, port, portName);
        reject(
          new Error(`cannot listen on ${host} port ${port} for ${purpose}: ${fault}`, {
            cause: error,
          }),
        );
      };
      server.once("error", failed);
      server.listen(port, host, () => {
        server.off("error", failed);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Pipelined requests would queue without a limit. */
  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (this.#busy.has(socket)) return void socket.destroy();
    this.#busy.add(socket);
    response.once("close", () => this.#busy.delete(socket));
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

const hostOf = {
  PORT: "HOST",
  ADMIN_PORT: "ADMIN_HOST",
  EFFECTS_PORT: "EFFECTS_HOST",
  SINK_PORT: "SINK_HOST",
} as const;

export type PortName = keyof typeof hostOf;

export function portFault(error: NodeJS.ErrnoException, port: number, name: PortName): string {
  const host = `PENSTOCK_${hostOf[name]} (${flagOf(hostOf[name])})`;
  switch (error.code) {
    case "EADDRINUSE":
      return `the port is taken. Set PENSTOCK_${name} (${flagOf(name)}) to another port, or stop the process that uses it; \`ss -ltnp sport = :${port}\` shows it`;
    case "EACCES":
      return `not permitted: set PENSTOCK_${name} (${flagOf(name)}) to a port of at least 1024, or grant the permission for lower ports`;
    case "EADDRNOTAVAIL":
      return `this host does not have this address: set ${host} to an address of this host`;
    case "ENOTFOUND":
      return `unknown host name: set ${host} to an address of this host`;
    default:
      return error.message;
  }
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll("_", "-")}`;
}
