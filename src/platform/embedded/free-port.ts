import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const portMin = 15_000;
const portMax = 32_000;
const triesMax = 200;

/**
 * Returns a free port below 32,768, where Linux begins to assign ports: a port above may belong to
 * any connection at the next start. After many tries returns -1: nats-server then chooses.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries++) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
  return -1;
}

export function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
      probe.close(() => resolve(true)),
    );
  });
}
