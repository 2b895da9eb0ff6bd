// Runs the tests on the pinned Node and closes with their count, alone on a line. Fails when a test
// failed, when none ran, and when an addon is not there: the tests that compare the two scanners
// would compare nothing.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { findChromium } from "./lib/chromium.mjs";
import { cacheDir, modulesDir, root, runtimeNode } from "./lib/project.mjs";

const resultFile = join(cacheDir, `test-results-${process.pid}.json`);

function runTests() {
  const notBuilt = addonsNotBuilt();
  for (const { name, log } of notBuilt) {
    process.stderr.write(
      `the ${name} is not built: run \`npm run setup\`; log of the last try: ${log}\n`,
    );
  }
  if (notBuilt.length > 0) return 1;
  mkdirSync(cacheDir, { recursive: true });
  const vitest = join(modulesDir, "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${resultFile}`];
  // The tests of browser clients run where there is a Chromium, and say so where there is none.
  const chromium = findChromium();
  const done = spawnSync(runtimeNode(), [vitest, "run", ...reporters, ...process.argv.slice(2)], {
    cwd: root,
    stdio: "inherit",
    env:
      chromium === undefined ? process.env : { ...process.env, PENSTOCK_TEST_CHROMIUM: chromium },
  });
  const { passed, failed, skipped } = readCounts();
  process.stdout.write(
    `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`,
  );
  if (done.status !== 0) return done.status ?? 1;
  return failed === 0 && passed > 0 ? 0 : 1;
}

function readCounts() {
  try {
    const results = JSON.parse(readFileSync(resultFile, "utf8"));
    // A file that could not even be loaded has no tests in it, and is a failure all the same.
    const unloadable = results.testResults.filter(
      (file) =>
        file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
    );
    return {
      passed: results.numPassedTests,
      failed: results.numFailedTests + unloadable.length,
      skipped: results.numPendingTests + results.numTodoTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(resultFile, { force: true });
  }
}

process.exitCode = runTests();
