import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { readConnectionNote } from "../../src/platform/embedded/nats-config.ts";
import { findNatsServer } from "../kit/nats-server.ts";
import { ended, isRunning, penstock, penstockWith, temporaryFolder } from "../kit/processes.ts";

const start = ["--stream-bytes-max", "8388608", "--port", "0", "--admin-port", "0"];

function curl(line: string): string {
  return execFileSync("sh", ["-c", `${line} --silent --max-time 10`], { encoding: "utf8" });
}

describe("penstock", () => {
  test("up works with curl, tail and project", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock("up", "--data-dir", dataDir, ...start);
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("./penstock tail");
    const line = /^ {2}(curl .*)$/m.exec(gateway.said.out)?.[1] ?? "";
    expect(curl(line)).toMatch(/200 OK[\s\S]*"accepted":1/);

    const tail = penstock("tail", "--data-dir", dataDir, "--from-start", "--lane", "live");
    await expect.poll(() => tail.said.out, { timeout: 30_000 }).toContain("\n");
    expect(JSON.parse(tail.said.out)).toMatchObject({
      project_id: "demo",
      event: "hello",
      distinct_id: "me",
    });

    const add = penstock("project", "add", "shop", "--key", "phc_shop", "--data-dir", dataDir);
    expect(await ended(add)).toBe(0);
    const toShop = line.replace("phc_demo", "phc_shop").replace("hello", "from shop");
    await expect.poll(() => curl(toShop)).toContain("200 OK");
    await expect.poll(() => tail.said.out).toContain('"event":"from shop"');
    tail.kill("SIGINT");
    expect(await ended(tail)).toBe(0);

    const list = penstock("project", "list", "--json", "--data-dir", dataDir);
    expect(await ended(list)).toBe(0);
    expect(JSON.parse(list.said.out)).toMatchObject([
      { id: "demo" },
      { id: "shop", keys: ["phc_shop"] },
    ]);

    const serverPid = readConnectionNote(dataDir)?.pid ?? 0;
    expect(isRunning(serverPid)).toBe(true);
    gateway.kill("SIGTERM");
    expect(await ended(gateway)).toBe(0);
    expect(isRunning(serverPid)).toBe(false);
  });

  test("up listens on loopback or on the configured address", async () => {
    const listening = (said: string): unknown =>
      /"host":"([^"]+)","port":\d+,"adminHost"/.exec(said)?.[1];
    const alone = penstock("up", "--data-dir", temporaryFolder(), ...start);
    await expect.poll(() => listening(alone.said.err), { timeout: 30_000 }).toBe("127.0.0.1");
    const exposed = penstockWith(
      { PENSTOCK_HOST: "0.0.0.0" },
      "up",
      "--data-dir",
      temporaryFolder(),
      ...start,
    );
    await expect.poll(() => listening(exposed.said.err), { timeout: 30_000 }).toBe("0.0.0.0");
    await expect.poll(() => exposed.said.out, { timeout: 30_000 }).toContain("./penstock tail");
    expect(exposed.said.out).toContain("open on 0.0.0.0, and the key phc_demo is public");
    expect(alone.said.out).not.toContain("is public");
    const help = penstock("up", "--help");
    expect(await ended(help)).toBe(0);
    expect(help.said.out.replaceAll(/\s+/g, " ")).toContain("[PENSTOCK_HOST, default 127.0.0.1]");
  });

  test.each([
    ["--port", "PENSTOCK_PORT (--port)"],
    ["--admin-port", "PENSTOCK_ADMIN_PORT (--admin-port)"],
    ["--effects-port", "PENSTOCK_EFFECTS_PORT (--effects-port)"],
  ])("up reports that %s is in use with the setting", async (flag, setting) => {
    const stranger = createServer().listen(0, "127.0.0.1");
    await once(stranger, "listening");
    const { port } = stranger.address() as AddressInfo;
    const gateway = penstock("up", "--data-dir", temporaryFolder(), ...start, flag, String(port));
    expect(await ended(gateway)).toBe(1);
    expect(gateway.said.err).toContain(`the port is taken. Set ${setting} to another`);
    expect(gateway.said.err).toContain(`ss -ltnp sport = :${port}`);
    stranger.close();
  });

  test("up waits for a nats-server that does not answer for some seconds", async () => {
    const binary = path.join(temporaryFolder(), "nats-server");
    // Stops the server as soon as it listens. The kernel accepts connections, but no program
    // answers.
    writeFileSync(
      binary,
      `#!/bin/sh
if [ "$1" = -c ]; then
  ports="$(dirname "$2")/nats-server_$$.ports"
  (until [ -e "$ports" ]; do :; done; kill -STOP $$; sleep 5; kill -CONT $$) &
fi
exec "${findNatsServer()}" "$@"
`,
      { mode: 0o755 },
    );
    const gateway = penstockWith(
      { PENSTOCK_NATS_SERVER: binary },
      "up",
      "--data-dir",
      temporaryFolder(),
      ...start,
    );
    await expect
      .poll(() => gateway.said.out || gateway.exitCode, { timeout: 60_000 })
      .toContain("./penstock tail");
  });

  test("tail exits with code 0 when its output is closed", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock("up", "--data-dir", dataDir, ...start);
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("curl ");
    const line = /^ {2}(curl .*)$/m.exec(gateway.said.out)?.[1] ?? "";
    const tail = penstock("tail", "--data-dir", dataDir);
    await expect.poll(() => tail.said.err, { timeout: 30_000 }).toContain("following");
    tail.stdout?.destroy();
    await expect
      .poll(
        () => {
          curl(line);
          return tail.exitCode;
        },
        { timeout: 30_000, interval: 50 },
      )
      .toBe(0);
    expect(tail.said.err).not.toContain("EPIPE");
  });

  test("serve can be stopped while it waits for NATS", async () => {
    const gateway = penstock(
      "serve",
      "--nats-url",
      "nats://127.0.0.1:1",
      "--port",
      "0",
      "--admin-port",
      "0",
    );
    await expect.poll(() => gateway.said.err, { timeout: 30_000 }).toContain("waiting for NATS");
    gateway.kill("SIGTERM");
    expect(await ended(gateway)).toBe(0);
  });
});
