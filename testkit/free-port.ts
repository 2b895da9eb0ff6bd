// Finds a port for a server that is to come back on it. The port is below the range from which the
// system gives out ports by itself (32,768 on by Linux's default). A port of that range may be
// somebody else's as soon as it is let go, and clients of the server would then talk to a stranger.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const portMin = 15_000;
const portMax = 32_000;

/** A port that was free on 127.0.0.1 a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
      probe.close(() => resolve(true)),
    );
  });
}
