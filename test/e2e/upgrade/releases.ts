// The two releases: this tree, and 0.1.0. The older release is built from the history of this
// repository into .cache/older, once for each commit.

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { type Child, startChild } from "../../../bench/harness/child.ts";
import { findNatsServer } from "../../kit/nats-server.ts";

export interface Release {
  /** The program and its first arguments, before the command. */
  readonly program: readonly string[];
}

const root = path.resolve(import.meta.dirname, "../../..");
const olderCommit = "2bb4d98027ec3009840fee60e5739bf2cb9654ec";
const olderFolder = path.join(root, ".cache", "older", olderCommit);
const builtMark = path.join(olderFolder, ".cache", "built");

export const newer = releaseIn(root);
export const older = releaseIn(olderFolder);

function releaseIn(folder: string): Release {
  const node = path.join(folder, "node_modules", ".bin", "node");
  return {
    program: [node, "--disable-warning=ExperimentalWarning", path.join(folder, "dist", "main.js")],
  };
}

/** Builds 0.1.0 if it is not built. Throws if its commit is missing, or if its set-up fails. */
export function buildOlder(): void {
  if (existsSync(builtMark)) return;
  const found = spawnSync("git", ["-C", root, "cat-file", "-e", `${olderCommit}^{commit}`]);
  if (found.status !== 0) {
    throw new Error(
      `cannot build Penstock 0.1.0: git does not find its commit ${olderCommit} in ${root}: fetch the whole history (git fetch --unshallow), or run this test in a clone with it`,
    );
  }
  rmSync(olderFolder, { recursive: true, force: true });
  mkdirSync(olderFolder, { recursive: true });
  const archive = `${olderFolder}.tar`;
  execFileSync("git", ["-C", root, "archive", `--output=${archive}`, olderCommit]);
  execFileSync("tar", ["-xf", archive, "-C", olderFolder]);
  rmSync(archive);
  const { NODE_OPTIONS: _, ...env } = process.env;
  const setUp = spawnSync(process.execPath, ["scripts/setup.mjs", "--parquet"], {
    cwd: olderFolder,
    env: { ...env, PENSTOCK_NATS_SERVER: findNatsServer() },
    encoding: "utf8",
  });
  if (setUp.status !== 0)
    throw new Error(
      `cannot build Penstock 0.1.0 in ${olderFolder}: ${setUp.stdout}${setUp.stderr}`,
    );
  writeFileSync(builtMark, "");
}

/** Starts a command that runs until it is ended. */
export function start(
  { program: [file = "", ...first] }: Release,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Child {
  return startChild({ program: file, args: [...first, ...args], env });
}

const commandMsMax = 60_000;
const outputBytesMax = 2 ** 29;

interface Ran {
  readonly code: number;
  readonly stdout: string;
  /** Standard output and standard error. */
  readonly output: string;
}

/** Runs a command of the release, for at most a minute. */
export async function run(
  { program: [file = "", ...first] }: Release,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ran> {
  const options = { env: environment(env), timeout: commandMsMax, maxBuffer: outputBytesMax };
  try {
    const { stdout, stderr } = await promisify(execFile)(file, [...first, ...args], options);
    return { code: 0, stdout, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (typeof code !== "number") throw error;
    return { code, stdout, output: stdout + stderr };
  }
}

function environment(own: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
  return { ...Object.fromEntries(inherited), ...own };
}
