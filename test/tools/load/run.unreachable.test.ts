import { type AddressInfo, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../kit/processes.ts";
import { load, short, standIn, startLoad } from "./load-kit.ts";

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("the load test sends nothing", () => {
  test("if it cannot reach the gateway", async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    const { code, out, err } = await startLoad("--url", url, "--duration", "600").finished;
    expect(code).toBe(1);
    expect(out).toBe("");
    expect(err).toBe(
      `load: nothing answers at ${url} (ECONNREFUSED): start Penstock with \`npm run up\` and leave it running, in another terminal; or say with --url where it is\n`,
    );
  });

  test("if it reaches neither the gateway nor a data folder", async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    await expect(load("--url", url, "--data-dir", temporaryFolder())).rejects.toThrow(
      /nothing answers at/,
    );
  });

  test("if no HTTP server uses the port", async () => {
    const server = createServer((socket) => void socket.end("220 mail\r\n"));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { code, err } = await startLoad("--url", `http://127.0.0.1:${port}`).finished;
    expect([code, err]).toEqual([1, expect.stringContaining("gives no HTTP answer")]);
  });

  test("if it cannot reach the given NATS server", async () => {
    const gateway = await standIn(() => expect.unreachable());
    const url = `nats://127.0.0.1:${await unusedPort()}`;
    await expect(load("--url", gateway, ...short, "--nats-url", url)).rejects.toThrow(
      /connect to NATS at/,
    );
  });

  test("if it cannot reach the nats-server of the given data folder", async () => {
    const gateway = await standIn(() => expect.unreachable());
    await expect(load("--url", gateway, ...short, "--data-dir", temporaryFolder())).rejects.toThrow(
      /no embedded nats-server runs/,
    );
  });
});
