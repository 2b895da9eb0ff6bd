// Ports for the servers of tests. A port is chosen before its server listens, so other tests must
// not choose it meanwhile.

import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { tryListen } from "../../src/platform/base/http-port.ts";

const portMin = 10_000;
const portMax = 15_000;
const triesMax = 500;
const reservedMax = 256;
const reservations: Socket[] = [];

/**
 * Reserves the port against the tests of all processes. The reservation is a UDP socket on the same
 * number, which the kernel closes with this process.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = randomInt(portMin, portMax);
    const reservation = await reserved(port);
    if (reservation === undefined) continue;
    try {
      await tryListen("127.0.0.1", port);
    } catch {
      reservation.close();
      continue;
    }
    reservations.push(reservation);
    if (reservations.length > reservedMax) reservations.shift()?.close();
    return port;
  }
  throw new Error(`choose a port: none of ${triesMax} between ${portMin} and ${portMax} is free`);
}

async function reserved(port: number): Promise<Socket | undefined> {
  const socket = createSocket("udp4").unref();
  try {
    const listening = once(socket, "listening");
    socket.bind({ port, address: "127.0.0.1", exclusive: true });
    await listening;
    return socket;
  } catch {
    socket.close();
    return undefined;
  }
}
