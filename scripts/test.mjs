// Runs the tests on the pinned Node and closes with their count, alone on a line. Fails when a test
// failed, also once more by itself, when none ran, and when an addon is not there: the tests that
// compare the two scanners would compare nothing.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { findChromium } from "./lib/chromium.mjs";
import { cacheDir, modulesDir, root, runtimeNode, strippedDir } from "./lib/project.mjs";

const resultFile = join(cacheDir, `test-results-${process.pid}.json`);
/** More files that fail are no matter of what else the machine did. */
const filesAgainMax = 5;
/** Each test of these brings up servers of its own. All of such a file take minutes. */
const testsApart = /faults[\\/]scenarios\.[a-z]+\.test\.ts$/;
const alone = ["--maxWorkers=1"];

function runTests(args) {
  const notBuilt = addonsNotBuilt();
  for (const { name, log } of notBuilt) {
    process.stderr.write(
      `the ${name} is not built: run \`npm run setup\`; log of the last try: ${log}\n`,
    );
  }
  if (notBuilt.length > 0) return 1;
  mkdirSync(cacheDir, { recursive: true });
  // Else each text that a file ever had would stay.
  rmSync(strippedDir, { recursive: true, force: true });
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
 * have waited for what the machine had no time for. Its file runs once more, alone; of a file whose
 * tests do not need one another, only the test. That it passed only then is told, for a test that
 * needs it is one to be mended.
 */
function againAlone({ failures, status }, args) {
  const isFew = failures.length > 0 && failures.length <= filesAgainMax;
  if (status === 0 || !isFew || args.length > 0) return undefined;
  process.stdout.write(`\nonce more, one at a time: what failed beside the others\n`);
  const whole = failures.filter((failure) => !isInPart(failure));
  const inPart = failures.filter(isInPart);
  const runs = [
    ...(whole.length === 0 ? [] : [run([...whole.map(({ file }) => file), ...alone])]),
    ...inPart.map(({ file, tests }) => run([file, `--testNamePattern=${anyOf(tests)}`, ...alone])),
  ];
  const failed = runs.flatMap((one) => one.failures.flatMap(({ tests }) => tests));
  const before = failures.flatMap(({ tests }) => tests);
  for (const name of before.filter((one) => !failed.includes(one)))
    process.stdout.write(`failed beside others, passed alone: ${name}\n`);
  const ends = runs.map((one) => one.status);
  return { failed: failed.length, status: ends.find((end) => end !== 0) ?? 0 };
}

/** A file that could not be loaded has no test that could be named. */
function isInPart({ file, tests }) {
  return testsApart.test(file) && !tests.includes(file);
}

function anyOf(tests) {
  const exact = tests.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return `^(${exact.join("|")})$`;
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
    const failures = files.map(({ name: file, assertionResults }) => {
      const tests = assertionResults.filter(({ status }) => status === "failed");
      return { file, tests: tests.length === 0 ? [file] : tests.map(({ fullName }) => fullName) };
    });
    return {
      passed: results.numPassedTests,
      failed: failures.flatMap(({ tests }) => tests).length,
      skipped: results.numPendingTests + results.numTodoTests,
      failures,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0, failures: [] };
  } finally {
    rmSync(resultFile, { force: true });
  }
}

process.exitCode = runTests(process.argv.slice(2));
