// Finds a port for a server that is to come back on it. The port is below the range from which the
// system gives out ports by itself (32,768 on by Linux's default). A port of that range may be in
// use by anybody's connection at the next start, and clients of the server would then talk to a
// stranger.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const portMin = 15_000;
const portMax = 32_000;
const triesMax = 200;

/**
 * Answers a port that was free on 127.0.0.1 a moment ago, or -1, which makes nats-server take any,
 * when many tries have found none.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
  return -1;
}

/** Whether nobody listens on the port of 127.0.0.1. */
export function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
      probe.close(() => resolve(true)),
    );
  });
}
