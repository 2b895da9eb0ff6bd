// Runs the tests and prints the coverage of src, including processes that tests start. The report
// by line is in .cache/coverage/report.

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, modulesDir, root, runtimeNode } from "./lib/project.mjs";

const coverageDir = join(cacheDir, "coverage");
const rawDir = join(coverageDir, "raw");
const reportDir = join(coverageDir, "report");

function run(script, args, env = {}) {
  const options = { cwd: root, stdio: "inherit", env: { ...process.env, ...env } };
  return spawnSync(runtimeNode(), [script, ...args], options).status ?? 1;
}

rmSync(coverageDir, { recursive: true, force: true });
const tested = run(join(root, "scripts", "test.mjs"), process.argv.slice(2), {
  NODE_V8_COVERAGE: rawDir,
});
const reporters = ["--reporter=text", "--reporter=html"];
const reported = run(join(modulesDir, "c8", "bin", "c8.js"), [
  "report",
  "--all",
  "--src=src",
  "--include=src/**/*.ts",
  "--merge-async",
  `--temp-directory=${rawDir}`,
  `--reports-dir=${reportDir}`,
  ...reporters,
]);
process.exitCode = tested || reported;
