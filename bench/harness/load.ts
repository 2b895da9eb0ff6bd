// Runs a load generator in a separate process against one server and returns its result.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Delivery, LoadJob, LoadResult } from "../generators/job.ts";
import { type Child, startChild } from "./child.ts";
import { workFolder } from "./nats.ts";
import { cpuSeconds } from "./process-stats.ts";

export type ClosedLoop = "wrk" | "autocannon";

export interface Load {
  readonly name: string;
  readonly path: string;
  readonly method?: "POST" | "PUT";
  /** Sent in turn. No body may contain a line break. */
  readonly bodies: readonly Buffer[];
  readonly contentEncoding?: "gzip" | "br";
  /**
   * The body contains the unique mark, so that all requests differ. The generator compresses the
   * bodies itself.
   */
  readonly unique?: boolean;
  readonly eventsPerRequest: number;
  readonly connections: number;
  readonly seconds: number;
  /**
   * For unique bodies: the number of responses after which the load ends, instead of a duration.
   */
  readonly amount?: number | undefined;
  readonly rate?: number | undefined;
  readonly settleSeconds?: number | undefined;
  readonly opensConnections?: boolean;
  readonly attack?: Delivery;
  readonly from?: readonly string[];
}

export interface LoadRun extends LoadResult {
  readonly clientCpuSeconds: number;
}

const generators = join(import.meta.dirname, "..", "generators");
const connectionsPerThread = 64;
const graceMs = 180_000;
const sampleMs = 50;

export function hasWrk(): boolean {
  try {
    // Without arguments wrk prints its usage and exits with 1.
    execFileSync("wrk", ["-v"], { stdio: "ignore" });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

export async function runLoad(url: string, load: Load, closedLoop: ClosedLoop): Promise<LoadRun> {
  if (
    closedLoop === "wrk" &&
    load.attack === undefined &&
    load.rate === undefined &&
    load.unique !== true
  )
    return await runWrk(url, load);
  const script =
    load.attack !== undefined
      ? "attack.ts"
      : load.rate !== undefined
        ? "paced.ts"
        : load.unique === true
          ? "large.ts"
          : "autocannon.ts";
  const child = startChild({
    program: process.execPath,
    args: [
      "--disable-warning=ExperimentalWarning",
      join(generators, script),
      JSON.stringify(jobOf(url, load)),
    ],
    ipc: true,
  });
  return await watched(child, child.message<LoadResult>(load.seconds * 1_000 + graceMs));
}

function jobOf(url: string, load: Load): LoadJob {
  return {
    url,
    path: load.path,
    method: load.method ?? "POST",
    connections: load.connections,
    bodyFile: bodyFile(load.bodies),
    lines: load.bodies.length > 1,
    contentEncoding: load.contentEncoding,
    seconds: load.seconds,
    amount: load.amount,
    rate: load.rate,
    settleSeconds: load.settleSeconds ?? 0,
    opensConnections: load.opensConnections ?? false,
    delivery: load.attack ?? "whole",
    from: load.from ?? [],
  };
}

async function runWrk(url: string, load: Load): Promise<LoadRun> {
  const threads = Math.max(
    1,
    Math.min(Math.ceil(load.connections / connectionsPerThread), availableParallelism() - 1),
  );
  const child = startChild({
    program: "wrk",
    args: [
      "--threads",
      String(threads),
      "--connections",
      String(load.connections),
      "--duration",
      `${Math.max(1, Math.round(load.seconds))}s`,
      "--timeout",
      "60s",
      "--script",
      join(generators, "post.lua"),
      `${url}${load.path}`,
      "--",
      bodyFile(load.bodies),
      load.bodies.length > 1 ? "lines" : "body",
      load.contentEncoding ?? "identity",
      load.method ?? "POST",
    ],
  });
  const line = child.line(
    (text) => (text.startsWith("{") ? text : undefined),
    load.seconds * 1_000 + graceMs,
  );
  return await watched(
    child,
    line.then((text) => ({ ...(JSON.parse(text) as LoadResult), latencyMs: undefined })),
  );
}

async function watched(child: Child, result: Promise<LoadResult>): Promise<LoadRun> {
  let clientCpuSeconds = 0;
  const timer = setInterval(() => {
    const seconds = cpuSeconds(child.pid);
    if (seconds > 0) clientCpuSeconds = seconds;
  }, sampleMs);
  try {
    return { ...(await result), clientCpuSeconds };
  } finally {
    clearInterval(timer);
    await child.end();
  }
}

function bodyFile(bodies: readonly Buffer[]): string {
  const bytes =
    bodies.length === 1 ? bodies[0]! : Buffer.from(`${bodies.map(String).join("\n")}\n`);
  const file = join(
    workFolder,
    `body-${createHash("sha1").update(bytes).digest("hex").slice(0, 16)}`,
  );
  mkdirSync(workFolder, { recursive: true });
  if (!existsSync(file)) writeFileSync(file, bytes);
  return file;
}
