import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { monitoringPath } from "../../../src/platform/embedded/nats-config.ts";
import { binary, embeddedOn, temporaryFolder } from "../../kit/processes.ts";

describe("the configuration of the embedded nats-server", () => {
  test("has sync_interval: always in the running server's file", async () => {
    const dataDir = temporaryFolder();
    const embedded = await embeddedOn(dataDir);
    const file = path.join(dataDir, "nats", "nats-server.conf");
    expect(commandLineOf(embedded.pid)).toEqual([binary.file, "-c", file]);
    const text = readFileSync(file, "utf8");
    expect(uncommented(text)).toMatch(/\bjetstream \{[^}]*^\s*sync_interval: always$[^}]*\}/m);
    expect(uncommented(text).match(/sync_interval/g)).toHaveLength(1);
    expect(text).toContain(`listen: "127.0.0.1:${new URL(embedded.url).port}"`);
    expect(text).toContain(`authorization { token: ${JSON.stringify(embedded.token)} }`);
    execFileSync(binary.file, ["-t", "-c", file], { stdio: "pipe" });
  });

  test("is accessible only to its owner", async () => {
    const dataDir = temporaryFolder();
    const { token } = await embeddedOn(dataDir);
    expect(token.length).toBeGreaterThanOrEqual(32);
    const folder = path.join(dataDir, "nats");
    const files = readdirSync(folder).map((name) => path.join(folder, name));
    const secret = files.filter((file) => readFileSync(file, "utf8").includes(token));
    expect(secret.map((file) => path.basename(file)).sort()).toEqual([
      "connection.json",
      "nats-server.conf",
    ]);
    for (const file of secret) expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
    expect((statSync(path.join(dataDir, "jetstream")).mode & 0o077).toString(8)).toBe("0");
  });

  test("listens only on loopback and requires the token", async () => {
    const { url, token, pid } = await embeddedOn(temporaryFolder());
    expect(new URL(url).hostname).toBe("127.0.0.1");
    const listeners = listenersOf(pid);
    expect(listeners).toHaveLength(2);
    const ports = listeners.map((listener) => {
      const [host, port = ""] = listener.split(":");
      expect(host).toBe("0100007F");
      return Number.parseInt(port, 16);
    });
    expect(ports).toContain(Number(new URL(url).port));
    // The second port is for monitoring, below a secret path that is derived from the token.
    const monitoring = `http://127.0.0.1:${ports.find((port) => port !== Number(new URL(url).port))}`;
    const known = await fetch(`${monitoring}${monitoringPath(token)}/healthz`);
    expect(await known.json()).toEqual({ status: "ok" });
    for (const path of ["", "/", "/varz", "/healthz", "/connz"])
      expect((await fetch(`${monitoring}${path}`)).status).toBe(404);
    for (const wrong of [undefined, `${token}x`]) {
      const options = {
        servers: url,
        maxReconnectAttempts: 0,
        ...(wrong === undefined ? {} : { token: wrong }),
      };
      await expect(connect(options)).rejects.toThrow(/authorization/i);
    }
  });

  test("is the same after a restart", async () => {
    const dataDir = temporaryFolder();
    const embedded = await embeddedOn(dataDir);
    const killed = embedded.pid;
    process.kill(killed, "SIGKILL");
    await expect.poll(() => embedded.pid !== killed, { timeout: 30_000 }).toBe(true);
    const text = readFileSync(path.join(dataDir, "nats", "nats-server.conf"), "utf8");
    expect(uncommented(text)).toMatch(/^\s*sync_interval: always$/m);
    expect(text).toContain(`listen: "127.0.0.1:${new URL(embedded.url).port}"`);
  });
});

function uncommented(text: string): string {
  return text.replaceAll(/^\s*#.*$/gm, "");
}

function commandLineOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
}

function listenersOf(pid: number): string[] {
  const sockets = execFileSync("sh", ["-c", `readlink /proc/${pid}/fd/* || true`], {
    encoding: "utf8",
  });
  const inodes = new Set([...sockets.matchAll(/^socket:\[(\d+)\]$/gm)].map((match) => match[1]));
  return ["/proc/net/tcp", "/proc/net/tcp6"]
    .flatMap((table) => readFileSync(table, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A" && inodes.has(fields[9]))
    .map((fields) => fields[1] ?? "");
}
