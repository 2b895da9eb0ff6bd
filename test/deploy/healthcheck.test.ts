import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root } from "./files-kit.ts";

const script = path.join(root, "deploy/container/healthcheck.mjs");

interface Check {
  readonly listens: string;
  readonly settings: (port: string) => NodeJS.ProcessEnv;
  readonly args?: (port: string) => readonly string[];
}

async function exitCodeOf({ listens, settings, args = () => [] }: Check): Promise<number> {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === "/livez" ? 200 : 404).end();
  });
  server.listen(0, listens);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const port = String((server.address() as AddressInfo).port);
  const child = execFile(process.execPath, [script, ...args(port)], { env: settings(port) });
  const [code] = (await once(child, "exit")) as [number];
  return code;
}

test.each([
  ["127.0.0.1", undefined],
  ["127.0.0.1", ""],
  ["127.0.0.2", "127.0.0.2"],
  ["127.0.0.1", "0.0.0.0"],
  ["::1", "::1"],
  ["::1", "::"],
  ["127.0.0.1", "localhost"],
])(
  "the health check of the container reaches %s with PENSTOCK_ADMIN_HOST=%s",
  async (listens, host) => {
    const settings = (port: string) => ({
      PENSTOCK_ADMIN_PORT: port,
      ...(host === undefined ? {} : { PENSTOCK_ADMIN_HOST: host }),
    });
    expect(await exitCodeOf({ listens, settings })).toBe(0);
  },
);

test("the health check of the container fails if nothing listens at the address", async () => {
  const settings = (port: string) => ({
    PENSTOCK_ADMIN_PORT: port,
    PENSTOCK_ADMIN_HOST: "127.0.0.3",
  });
  expect(await exitCodeOf({ listens: "127.0.0.2", settings })).toBe(1);
});

test("the health check of another program asks the given port and address", async () => {
  const settings = () => ({ PENSTOCK_ADMIN_HOST: "127.0.0.3" });
  const listens = "127.0.0.2";
  expect(await exitCodeOf({ listens: "127.0.0.1", settings, args: (port) => [port] })).toBe(0);
  expect(await exitCodeOf({ listens, settings, args: (port) => [port, listens] })).toBe(0);
});
