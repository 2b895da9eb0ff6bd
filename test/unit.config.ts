// `npm run test:unit`: the tests that start no process. A test file is included if no file that it
// imports, directly or indirectly, starts processes.

import { globSync, readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { defineConfig } from "vitest/config";
import allTests from "./vitest.config.ts";

const root = path.resolve(import.meta.dirname, "..");
const startsProcesses = /^\s*import [^;"]*"node:(child_process|cluster)"/m;
/** Types are removed when a file runs, so only imports of values count. */
const imports = /(?:^(?:import|export)(?! type)[^;"]*?|\bimport\()"(\.[^"]+)"/gm;

function isUnitTest(testFile: string): boolean {
  const files = new Set([path.join(root, testFile)]);
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    if (startsProcesses.test(text)) return false;
    for (const [, imported = ""] of text.matchAll(imports)) {
      const next = path.resolve(path.dirname(file), imported);
      if (statSync(next, { throwIfNoEntry: false })?.isFile()) files.add(next);
    }
  }
  return true;
}

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from the default export
export default defineConfig({
  test: {
    ...allTests.test,
    include: globSync("test/**/*.test.ts", { cwd: root }).filter(isUnitTest),
    // Some files wait for timeouts of the HTTP library, which take no CPU time.
    maxWorkers: availableParallelism() + 2,
  },
});
