// Finds a port that a server can use again after a restart. The port is below the range from which
// the system assigns ports (32,768 and above by Linux's default). A port in that range may belong
// to any connection at the next start, and clients would then connect to an unrelated program.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const portMin = 15_000;
const portMax = 32_000;
const triesMax = 200;

/**
 * Returns a port that was free on 127.0.0.1 a moment ago. After many failed tries returns -1, which
 * makes nats-server choose a port.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
  return -1;
}

/** Returns whether no program listens on the port of 127.0.0.1. */
export function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
      probe.close(() => resolve(true)),
    );
  });
}
