// Test files start their own servers and wait most of the time, so five run concurrently. With four,
// all files took 2,600 s, a third of it CPU time. Files share processes, because a separate process
// costs half a second of CPU. A file must leave nothing in a process that affects other files.

import { readFileSync, statfsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SlowFirst } from "./kit/slow-first.ts";

const stripped = new URL("kit/stripped.mjs", import.meta.url);
const compiledDir = fileURLToPath(new URL("../.cache/stripped/compiled", import.meta.url));
const inMemory = "/dev/shm";
const inMemoryBytesMin = 4 * 1_073_741_824;

/** In memory, an fsync takes no time. Some tests run programs from temporary folders. */
function hasMemoryFolder(): boolean {
  try {
    const { bavail, bsize } = statfsSync(inMemory);
    const mount =
      readFileSync("/proc/mounts", "utf8").match(/^\S+ \/dev\/shm .*$/m)?.[0] ?? "noexec";
    return bavail * bsize >= inMemoryBytesMin && !mount.includes("noexec");
  } catch {
    return false;
  }
}

const countsCoverage = process.env["NODE_V8_COVERAGE"] !== undefined;

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from the default export
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("..", import.meta.url)),
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 5,
    isolate: false,
    // Node runs the files, as it runs Penstock. Code that vite has transformed needs more CPU, and
    // coverage is counted by position in the unchanged file.
    experimental: { viteModuleRunner: false },
    execArgv: [`--import=${stripped}`],
    setupFiles: countsCoverage ? ["test/kit/take-coverage.ts"] : [],
    env: {
      NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=${stripped}`,
      // The start of a gateway needs a tenth less CPU. The cache makes coverage less exact.
      ...(countsCoverage ? {} : { NODE_COMPILE_CACHE: compiledDir }),
      // nats-server and promtool live for seconds. With fewer garbage collections, promtool takes 40 %
      // less CPU, and a scenario with a cluster 10 % less.
      GOGC: "400",
      ...(hasMemoryFolder() ? { TMPDIR: inMemory } : {}),
    },
    sequence: { sequencer: SlowFirst },
    testTimeout: 90_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
