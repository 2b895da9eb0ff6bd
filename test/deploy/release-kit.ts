import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, onTestFinished } from "vitest";
import type { TestNatsServer } from "../kit/nats-server.ts";
import { saidBy } from "../kit/processes.ts";
import type { Env } from "./files-kit.ts";

interface RunningPenstock {
  readonly url: string;
  readonly adminUrl: string;
  log(): Record<string, unknown>[];
  mapped(): string[] | undefined;
  stop(): Promise<number | null>;
}

export function gatewayEnv(nats: TestNatsServer, more: Env = {}): Env {
  return {
    PATH: process.env["PATH"] ?? "",
    PENSTOCK_NATS_URL: nats.url,
    PENSTOCK_STREAM_BYTES_MAX: String(128 * 1_048_576),
    ...more,
  };
}

export function runCommand(command: readonly [string, ...string[]], env: Env): string {
  const [program, ...args] = command;
  const done = spawnSync(program, args, { env, cwd: tmpdir(), encoding: "utf8" });
  if (done.status !== 0)
    throw new Error(`run ${command.join(" ")}: ${done.status}: ${done.stderr}${done.error ?? ""}`);
  return done.stdout;
}

export function speaking(
  command: readonly [string, ...string[]],
  env: Env,
): { out: string; err: string } {
  const [program, ...args] = command;
  const child = spawn(program, args, { env, cwd: tmpdir(), stdio: ["ignore", "pipe", "pipe"] });
  const said = saidBy(child);
  onTestFinished(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    if (child.exitCode === null && child.kill("SIGTERM")) await ended;
  });
  return said;
}

export async function startPenstock(
  command: readonly [string, ...string[]],
  env: Env,
): Promise<RunningPenstock> {
  const [program, ...args] = command;
  const ports = { PENSTOCK_HOST: "127.0.0.1", PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0" };
  const child = spawn(program, args, {
    env: { ...ports, PENSTOCK_LOG_LEVEL: "debug", ...env },
    cwd: tmpdir(),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("exit", (code) => resolve(code));
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  const log = (): Record<string, unknown>[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const listening = (): Record<string, unknown> | undefined =>
    log().find(({ msg }) => msg === "gateway listening");
  await expect
    .poll(() => listening() ?? child.exitCode, { timeout: 30_000, message: "listens" })
    .not.toBeNull();
  if (child.exitCode !== null)
    throw new Error(`start ${program}: it ended with ${child.exitCode}: ${text}`);
  return {
    url: `http://127.0.0.1:${listening()?.["port"]}`,
    adminUrl: `http://127.0.0.1:${listening()?.["adminPort"]}`,
    log,
    mapped() {
      const maps = `/proc/${child.pid}/maps`;
      if (!existsSync(maps)) return undefined;
      return [...new Set(readFileSync(maps, "utf8").match(/(?<= )\/.*$/gm))];
    },
    async stop() {
      child.kill("SIGTERM");
      return await ended;
    },
  };
}
