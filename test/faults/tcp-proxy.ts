// A TCP proxy in front of one nats-server, which simulates network faults. It drops only complete
// messages of the NATS protocol.

import { createServer, type Server, Socket } from "node:net";
import type { TcpProxy } from "./scenario.ts";

/**
 * If a direction holds more bytes, the proxy stops reading, and the sender's buffers fill as on a
 * slow line.
 */
const heldBytesMax = 1_048_576;
const pieceBytesMax = 16_384;

type Direction = "toServer" | "toClient";

interface Network {
  isCut: boolean;
  stalls: Readonly<Record<Direction, boolean>>;
  dropsReplies: boolean;
  delayMs: number;
  bytesPerSecond: number;
}

interface Link {
  update(): void;
}

interface Pipe {
  update(): void;
  close(): void;
}

interface TcpProxyOptions {
  readonly isRoute?: boolean;
}

const neverStalled = { toServer: false, toClient: false };

export async function startTcpProxy(
  upstreamPort: number,
  { isRoute = false }: TcpProxyOptions = {},
): Promise<TcpProxy> {
  const network: Network = {
    isCut: false,
    stalls: neverStalled,
    dropsReplies: false,
    delayMs: 0,
    bytesPerSecond: 0,
  };
  const sockets = new Set<Socket>();
  const links = new Set<Link>();

  function accept(client: Socket): void {
    if (network.isCut) {
      client.resetAndDestroy();
      return;
    }
    const server = new Socket();
    const whole = (chunk: Buffer): Buffer[] => [chunk];
    const replies = isRoute ? whole : createReplyFilter(network);
    const ends = [client, server];
    const pipes: Pipe[] = [];
    let isOver = false;

    // While the network is silent, no end detects that a connection is opened or closed.
    function update(): void {
      const isSilent = network.stalls.toServer || network.stalls.toClient;
      if (isOver && !isSilent) {
        links.delete(link);
        for (const end of ends) end.destroy();
        for (const pipe of pipes) pipe.close();
        return;
      }
      if (pipes.length === 0 && !isSilent) {
        pipes.push(createPipe(client, server, { network, direction: "toServer", filter: whole }));
        pipes.push(createPipe(server, client, { network, direction: "toClient", filter: replies }));
        server.connect(upstreamPort, "127.0.0.1");
      }
      for (const pipe of pipes) pipe.update();
    }

    const link = { update };
    links.add(link);
    for (const socket of ends) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.once("close", () => {
        sockets.delete(socket);
        isOver = true;
        update();
      });
    }
    update();
  }

  function change(changed: Partial<Network>): void {
    Object.assign(network, changed);
    for (const link of [...links]) link.update();
  }

  const listener = createServer(accept);
  const port = await listen(listener);
  const reset = (): void => {
    // A socket that is being shut down cannot be reset: Node would lose its handle, and never close
    // the socket.
    for (const socket of sockets)
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    cut() {
      change({ isCut: true });
      reset();
    },
    open: () => change({ isCut: false }),
    reset,
    dropReplies: (dropsReplies) => change({ dropsReplies }),
    slow: (delayMs, bytesPerSecond) => change({ delayMs, bytesPerSecond }),
    stall: (isStalled) => change({ stalls: { toServer: isStalled, toClient: isStalled } }),
    stallOneWay: (direction) => change({ stalls: { ...neverStalled, [direction]: true } }),
    close() {
      network.stalls = neverStalled;
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => listener.close(() => resolve()));
    },
  };
}

function listen(listener: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(0, "127.0.0.1", () => {
      const address = listener.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}

interface PipeOptions {
  readonly network: Network;
  readonly direction: Direction;
  readonly filter: (chunk: Buffer) => Buffer[];
}

function createPipe(from: Socket, to: Socket, { network, direction, filter }: PipeOptions): Pipe {
  const held: { bytes: Buffer; arrivedMs: number }[] = [];
  let heldBytes = 0;
  let lineFreeMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function take(chunk: Buffer): void {
    const arrivedMs = performance.now();
    for (const part of filter(chunk)) {
      for (let start = 0; start < part.length; start += pieceBytesMax) {
        const bytes = part.subarray(start, start + pieceBytesMax);
        held.push({ bytes, arrivedMs });
        heldBytes += bytes.length;
      }
    }
    pump();
  }

  function pump(): void {
    clearTimeout(timer);
    timer = undefined;
    while (!network.stalls[direction] && to.writableLength < heldBytesMax) {
      const next = held[0];
      if (next === undefined) break;
      const now = performance.now();
      const dueMs = Math.max(
        next.arrivedMs + network.delayMs,
        network.bytesPerSecond > 0 ? lineFreeMs : 0,
      );
      if (dueMs > now) {
        timer = setTimeout(pump, dueMs - now);
        break;
      }
      held.shift();
      heldBytes -= next.bytes.length;
      if (network.bytesPerSecond > 0)
        lineFreeMs = dueMs + (next.bytes.length / network.bytesPerSecond) * 1_000;
      to.write(next.bytes);
    }
    if (network.stalls[direction] || heldBytes >= heldBytesMax) from.pause();
    else from.resume();
  }

  from.on("data", take);
  to.on("drain", pump);
  return { update: pump, close: () => clearTimeout(timer) };
}

function createReplyFilter(network: Network): (chunk: Buffer) => Buffer[] {
  let line = "";
  let payloadBytes = 0;
  let isDropped = false;

  function partLength(chunk: Buffer, start: number): number {
    if (payloadBytes > 0) {
      const length = Math.min(payloadBytes, chunk.length - start);
      payloadBytes -= length;
      return length;
    }
    if (line === "") isDropped = network.dropsReplies;
    const lineEnd = chunk.indexOf(0x0a, start);
    const end = lineEnd < 0 ? chunk.length : lineEnd + 1;
    line += chunk.toString("latin1", start, end);
    if (lineEnd >= 0) {
      const size = /^H?MSG .* (\d+)\r\n$/i.exec(line)?.[1];
      payloadBytes = size === undefined ? 0 : Number(size) + 2;
      line = "";
    }
    return end - start;
  }

  return (chunk) => {
    const passed: Buffer[] = [];
    for (let start = 0; start < chunk.length; ) {
      const length = partLength(chunk, start);
      if (!isDropped) passed.push(chunk.subarray(start, start + length));
      start += length;
    }
    return passed;
  };
}
