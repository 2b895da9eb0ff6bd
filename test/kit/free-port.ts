// Chooses ports for the servers of tests. A port is reserved, because another test could choose the
// same port before the server listens.

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
 * Returns a free port that no other test process will choose. It is reserved by a UDP socket with
 * the same number, which the kernel closes when this process ends.
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
