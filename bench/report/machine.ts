// The machine and the versions of a measurement, so that a result can be interpreted years later.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem, type } from "node:os";
import { resolve } from "node:path";
import type { ClosedLoop } from "../harness/load.ts";
import { natsServerBinary } from "../harness/nats.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly filesystem: string;
}

export interface Versions {
  readonly commit: string;
  readonly changedFiles: number;
  readonly node: string;
  readonly natsServer: string;
  readonly closedLoop: string;
  readonly fastify: string;
}

const root = resolve(import.meta.dirname, "../..");
const bytesPerGiB = 1_073_741_824;

function said(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch (error) {
    // wrk prints its version and exits with 1.
    return String((error as { stdout?: string }).stdout ?? "").trim();
  }
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / bytesPerGiB),
    kernel: `${type()} ${release()}`,
    filesystem: said("stat", ["--file-system", "--format=%T", root]) || "unknown",
  };
}

function packageVersion(name: string): string {
  const text = readFileSync(resolve(root, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

export function versions(closedLoop: ClosedLoop): Versions {
  const changed = said("git", ["status", "--porcelain"]);
  const wrk = /wrk (\S+)/.exec(said("wrk", ["-v"]))?.[1] ?? "";
  return {
    commit: said("git", ["rev-parse", "--short", "HEAD"]) || "none",
    changedFiles: changed === "" ? 0 : changed.split("\n").length,
    node: process.version,
    natsServer: natsServerBinary().version,
    closedLoop: closedLoop === "wrk" ? `wrk ${wrk}` : `autocannon ${packageVersion("autocannon")}`,
    fastify: packageVersion("fastify"),
  };
}
