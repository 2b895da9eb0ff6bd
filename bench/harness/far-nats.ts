// A connection to a nats-server whose answers are delayed, to simulate distance without root
// privileges. A timer of Node is up to a millisecond late, so figures must also state the measured
// round trip.

import { createServer, connect as dial, type Socket } from "node:net";
import { connect } from "@nats-io/transport-node";
import { median } from "../report/rows.ts";

interface FarNats {
  readonly url: string;
  /** The round trip of a ping while no other request is in flight. */
  readonly roundTripMs: number;
  close(): void;
}

const pings = 50;

export async function startFarNats(upstreamUrl: string, lateMs: number): Promise<FarNats> {
  const { hostname, port } = new URL(upstreamUrl);
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const server = dial({ host: hostname, port: Number(port) });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket.setNoDelay(true));
      socket.on("error", () => {});
      socket.once("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(server);
    // Timers with the same delay fire in the order in which they were set.
    server.on("data", (chunk: Buffer) => setTimeout(() => client.write(chunk), lateMs));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("listen: no port");
  const url = `nats://127.0.0.1:${address.port}`;
  return {
    url,
    roundTripMs: await measureRoundTrip(url),
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export async function measureRoundTrip(url: string): Promise<number> {
  const connection = await connect({ servers: url });
  const took: number[] = [];
  while (took.length < pings) {
    const beganMs = performance.now();
    await connection.flush();
    took.push(performance.now() - beganMs);
  }
  await connection.close();
  return median(took);
}
