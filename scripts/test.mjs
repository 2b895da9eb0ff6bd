// Runs the tests on the pinned Node. If few files fail, they run again, alone. With --release, a
// test that passes only in the second run fails the run.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addonsNotBuilt } from "./lib/addon.mjs";
import { findOnPath } from "./lib/prerequisites.mjs";
import { cacheDir, modulesDir, root, runtimeNode, strippedDir } from "./lib/project.mjs";

const resultFile = join(cacheDir, `test-results-${process.pid}.json`);
/** With more failures, load is not the cause, and no file runs again. */
const filesRerunMax = 5;
/** Each test of these files starts its own servers. A whole file takes minutes. */
const testsApart = /faults[\\/]scenarios\.[a-z]+\.test\.ts$/;
const alone = ["--maxWorkers=1"];
const chromiumNames = ["chromium", "chromium-browser", "google-chrome"];

function runTests(args, { isRelease }) {
  const notBuilt = addonsNotBuilt();
  for (const { name, log } of notBuilt) {
    process.stderr.write(
      `the ${name} is not built: run \`npm run setup\`; log of the last try: ${log}\n`,
    );
  }
  if (notBuilt.length > 0) return 1;
  mkdirSync(cacheDir, { recursive: true });
  // Without this, the folder would keep every version of each file.
  rmSync(strippedDir, { recursive: true, force: true, maxRetries: 10 });
  const first = run(args);
  const rerun = args.length === 0 ? rerunFailures(first) : undefined;
  const flaky = rerun?.flaky ?? [];
  for (const name of flaky) process.stdout.write(`flaky: ${name}\n`);
  if (flaky.length > 0)
    process.stdout.write(`${flaky.length} flaky: failed with others, passed alone\n`);
  const failed = rerun?.failed ?? first.failed;
  const passed = first.passed + (first.failed - failed);
  const skipped = first.skipped > 0 ? `, ${first.skipped} skipped` : "";
  process.stdout.write(`${passed} passed, ${failed} failed${skipped}\n`);
  const { status } = rerun ?? first;
  if (status !== 0) return status ?? 1;
  if (isRelease && flaky.length > 0) return 1;
  return failed === 0 && passed > 0 ? 0 : 1;
}

/** One file at a time. If the tests of a file are independent, only its failed tests run. */
function rerunFailures({ failures, status }) {
  const isFew = failures.length > 0 && failures.length <= filesRerunMax;
  if (status === 0 || !isFew) return undefined;
  process.stdout.write("\nrunning the failed tests again, one file at a time\n");
  const whole = failures.filter((failure) => !isInPart(failure));
  const inPart = failures.filter(isInPart);
  const runs = [
    ...(whole.length === 0 ? [] : [run([...whole.map(({ file }) => file), ...alone])]),
    ...inPart.map(({ file, tests }) => run([file, `--testNamePattern=${anyOf(tests)}`, ...alone])),
  ];
  const failed = runs.flatMap((one) => one.failures.flatMap(({ tests }) => tests));
  const before = failures.flatMap(({ tests }) => tests);
  const ends = runs.map((one) => one.status);
  return {
    failed: failed.length,
    flaky: before.filter((one) => !failed.includes(one)),
    status: ends.find((end) => end !== 0) ?? 0,
  };
}

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
  // Without a Chromium, the tests of browser clients report that they did not run.
  const { PENSTOCK_TEST_CHROMIUM: named, ...env } = process.env;
  const chromium = named || chromiumNames.map(findOnPath).find(Boolean);
  if (chromium !== undefined) env.PENSTOCK_TEST_CHROMIUM = chromium;
  const all = [vitest, "run", ...config(args), ...reporters, ...args];
  const { status } = spawnSync(runtimeNode(), all, { cwd: root, stdio: "inherit", env });
  return { status, ...readResults() };
}

function config(args) {
  return args.includes("--config") ? [] : ["--config", join(root, "test", "vitest.config.ts")];
}

function readResults() {
  try {
    const results = JSON.parse(readFileSync(resultFile, "utf8"));
    const files = results.testResults.filter(({ status }) => status === "failed");
    // A file that could not be loaded has no tests, but is still a failure.
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

const args = process.argv.slice(2);
process.exitCode = runTests(
  args.filter((arg) => arg !== "--release"),
  { isRelease: args.includes("--release") },
);
