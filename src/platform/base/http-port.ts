// An HTTP port for operators and readers on node:http. Limits the number of connections, the
// requests of each to one at a time, and the time to receive the head of a request.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";

interface HttpPortOptions {
  /** Must not throw. A connection has at most one request at a time. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly connectionsMax: number;
  readonly connected?: (socket: Socket) => void;
  /** The purpose of the port, as the end of a sentence that begins with "Listen for". */
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
      // Node's own rejection would bypass the limit of one request at a time.
      requireHostHeader: false,
    });
    server.maxConnections = connectionsMax;
    if (connected !== undefined) server.on("connection", connected);
    // No body is read, so a client that waits for 100 Continue gets the response immediately.
    for (const event of ["request", "checkContinue", "checkExpectation"])
      server.on(event, (request, response) => this.#take(request, response));
    this.#server = server;
  }

  /** Listens, and returns the port. Rejects with an Error that states the cause. */
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

  /** Answers a request. Rejects pipelined requests, which would queue without a limit. */
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

/** Listens for a moment, and returns the port. Rejects with the system's error if that fails. */
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

/** Returns the cause of a failed listen, with the setting to change. */
export function portFault(error: NodeJS.ErrnoException, port: number, name: PortName): string {
  const host = `PENSTOCK_${hostOf[name]} (${flagOf(hostOf[name])})`;
  switch (error.code) {
    case "EADDRINUSE":
      return `the port is taken: set PENSTOCK_${name} (${flagOf(name)}) to another port, or stop the process that uses it; \`ss -ltnp sport = :${port}\` shows it`;
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
