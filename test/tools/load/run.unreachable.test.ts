// Nobody listens: every request fails by its kind of error, and the exit code is 1.

import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../testkit/processes.ts";
import { load, short } from "./load-kit.ts";

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("an unreachable gateway fails the run", () => {
  test("an unreachable gateway", async () => {
    const { code, result } = await load(
      "--url",
      `http://127.0.0.1:${await unusedPort()}`,
      "--rate",
      "50",
      ...short,
    );
    expect(code).toBe(1);
    expect(result.requests).toMatchObject({ due: 50, sent: 50, acknowledged: 0 });
    expect(result.answers).toEqual({ "error ECONNREFUSED": 50 });
    expect(result.failures).toEqual([expect.stringContaining("the rate was not held")]);
  });

  test("a NATS that cannot be reached is said before anything is sent", async () => {
    const url = `nats://127.0.0.1:${await unusedPort()}`;
    await expect(load("--rate", "50", ...short, "--nats-url", url)).rejects.toThrow(
      /connect to NATS at/,
    );
  });

  test("a data folder nobody runs on is said before anything is sent", async () => {
    await expect(load(...short, "--data-dir", temporaryFolder())).rejects.toThrow(
      /no embedded nats-server runs/,
    );
  });
});
