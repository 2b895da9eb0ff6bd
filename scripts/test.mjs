// Runs the tests on the pinned Node and closes with their count, alone on a line. Fails when a test
// failed, also once more by itself, when none ran, and when an addon is not there: the tests that
// compare the two scanners would compare nothing.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { findChromium } from "./lib/chromium.mjs";
import { cacheDir, modulesDir, root, runtimeNode } from "./lib/project.mjs";

const resultFile = join(cacheDir, `test-results-${process.pid}.json`);
/** More files that fail are no matter of what else the machine did. */
const filesAgainMax = 5;

function runTests(args) {
  const notBuilt = addonsNotBuilt();
  for (const { name, log } of notBuilt) {
    process.stderr.write(
      `the ${name} is not built: run \`npm run setup\`; log of the last try: ${log}\n`,
    );
  }
  if (notBuilt.length > 0) return 1;
  mkdirSync(cacheDir, { recursive: true });
  const first = run(args);
  const again = againAlone(first, args);
  const failed = again === undefined ? first.failed : again.failed;
  const passed = first.passed + (first.failed - failed);
  const skipped = first.skipped > 0 ? `, ${first.skipped} skipped` : "";
  process.stdout.write(`${passed} passed, ${failed} failed${skipped}\n`);
  const { status } = again ?? first;
  if (status !== 0) return status ?? 1;
  return failed === 0 && passed > 0 ? 0 : 1;
}

/**
 * All tests together keep two cores busy with servers for minutes, and a test that fails there may
 * have waited for what the machine had no time for. Its file runs once more, alone; that it passed
 * only then is told, for a test that needs it is one to be mended.
 */
function againAlone({ failedFiles, failedTests, status }, args) {
  const isFew = failedFiles.length > 0 && failedFiles.length <= filesAgainMax;
  if (status === 0 || !isFew || args.length > 0) return undefined;
  process.stdout.write(`\nonce more, one at a time: what failed beside the others\n`);
  const again = run([...failedFiles, "--maxWorkers=1"]);
  const mended = failedTests.filter((name) => !again.failedTests.includes(name));
  for (const name of mended) process.stdout.write(`failed beside others, passed alone: ${name}\n`);
  return again;
}

function run(args) {
  const vitest = join(modulesDir, "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${resultFile}`];
  // The tests of browser clients run where there is a Chromium, and say so where there is none.
  const chromium = findChromium();
  const { status } = spawnSync(runtimeNode(), [vitest, "run", ...reporters, ...args], {
    cwd: root,
    stdio: "inherit",
    env:
      chromium === undefined ? process.env : { ...process.env, PENSTOCK_TEST_CHROMIUM: chromium },
  });
  return { status, ...readResults() };
}

function readResults() {
  try {
    const results = JSON.parse(readFileSync(resultFile, "utf8"));
    const files = results.testResults.filter(({ status }) => status === "failed");
    // A file that could not even be loaded has no tests in it, and is a failure all the same.
    const failedTests = files.flatMap(({ name, assertionResults }) => {
      const tests = assertionResults.filter(({ status }) => status === "failed");
      return tests.length === 0 ? [name] : tests.map(({ fullName }) => fullName);
    });
    return {
      passed: results.numPassedTests,
      failed: failedTests.length,
      skipped: results.numPendingTests + results.numTodoTests,
      failedFiles: files.map(({ name }) => name),
      failedTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0, failedFiles: [], failedTests: [] };
  } finally {
    rmSync(resultFile, { force: true });
  }
}

process.exitCode = runTests(process.argv.slice(2));
