import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");

function exitOf(file: string, ...args: string[]): readonly [number | null, string] {
  const run = spawnSync(process.execPath, [path.join(root, file), ...args], {
    encoding: "utf8",
    timeout: 120_000,
  });
  return [run.status, run.stdout + run.stderr];
}

test.each([
  ["bench/load/load.ts", ["--bogus"], "unknown option '--bogus'"],
  ["bench/load/load.ts", ["--url", "http://192.0.2.1:8000"], "add --yes-i-own-this"],
  ["bench/main.ts", ["--bogus"], "unknown option '--bogus'"],
  ["test/faults/run.ts", ["no-such-scenario"], "no such scenario"],
  ["test/faults/run.ts", ["--soak", "long", "--network", "proxies"], "a soak has one nats-server"],
  ["test/faults/run.ts", ["--delay-ms", "far"], "must be a whole number up to 10000"],
  [
    "test/faults/run.ts",
    ["--delay-ms", "30", "--network", "namespaces"],
    "namespaces cannot delay",
  ],
  ["test/fuzz/fuzz.mjs", ["--bogus"], "Unknown option '--bogus'"],
  ["test/fuzz/fuzz.mjs", ["--seconds", "none"], "--seconds is a whole number"],
  ["test/fuzz/fuzz.mjs", ["--engine", "steam"], "--engine is one of"],
  ["scripts/release.mjs", [], "usage: npm run release"],
  ["scripts/release.mjs", ["/dev/null/x", "--hostonly"], 'unknown argument "--hostonly"; usage: '],
  ["scripts/release.mjs", ["/dev/null/x", "y"], 'unknown argument "y"; usage: '],
] as const)(
  "%s with the wrong arguments %j ends with exit code 2",
  { timeout: 120_000 },
  (file, args, words) => {
    expect(exitOf(file, ...args)).toEqual([2, expect.stringContaining(words)]);
  },
);

test.each(["bench/load/load.ts", "bench/main.ts", "test/faults/run.ts"])(
  "%s --help ends with exit code 0",
  (file) => {
    expect(exitOf(file, "--help")).toEqual([0, expect.stringContaining("Usage:")]);
  },
);
