// A port for operators and readers on plain node:http, off the hot path. Bounds what a caller can
// make it hold: connections, a request each, and the time that the head of one may take.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type PortName, portFault } from "./port-fault.ts";

interface HttpPortOptions {
  /** Must not throw. It is given the next request of a connection once this one has its answer. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly connectionsMax: number;
  /** Told of every connection. */
  readonly connected?: (socket: Socket) => void;
  /** Completes "Listen for …". */
  readonly purpose: string;
  /** The setting that names the port. */
  readonly portName: PortName;
  /** How long a request may take to come. Default: 10 seconds. */
  readonly requestMsMax?: number;
}

const headBytesMax = 16_384;
/** Node looks so many times in that time whether a request is late. */
const looksAtLateness = 10;

export class HttpPort {
  readonly #options: HttpPortOptions;
  readonly #server: Server;
  /** Connections with a request that has no answer yet. */
  readonly #busy = new WeakSet<Socket>();

  constructor(options: HttpPortOptions) {
    this.#options = options;
    const { requestMsMax = 10_000, connectionsMax, connected } = options;
    const server = createServer({
      maxHeaderSize: headBytesMax,
      headersTimeout: requestMsMax,
      requestTimeout: requestMsMax,
      connectionsCheckingInterval: Math.ceil(requestMsMax / looksAtLateness),
      // Node's own refusal would wait its turn unseen; `#take` refuses.
      requireHostHeader: false,
    });
    server.maxConnections = connectionsMax;
    if (connected !== undefined) server.on("connection", connected);
    // No body is read here, so whoever waits for a word before sending one gets the answer.
    for (const event of ["request", "checkContinue", "checkExpectation"])
      server.on(event, (request, response) => this.#take(request, response));
    this.#server = server;
  }

  /** The port, or an Error that says what is in the way. */
  listen(host: string, port: number): Promise<number> {
    const { purpose, portName } = this.#options;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        const fault = portFault(error, port, portName);
        reject(
          new Error(`Listen for ${purpose} on ${host} port ${port}: ${fault}`, { cause: error }),
        );
      };
      server.once("error", failed);
      server.listen(port, host, () => {
        server.off("error", failed);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  /** Stops listening and drops all connections. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /**
   * Requests that are sent ahead would wait their turn here without a bound, and Node does not say
   * of those when their caller has gone.
   */
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
