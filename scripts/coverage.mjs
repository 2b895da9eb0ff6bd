// Runs the tests, all or those of the arguments, and prints which part of src they ran: lines and
// branches by folder. Processes that tests start count too. The report by line is an HTML page in
// .cache/coverage/report.

import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { cacheDir, modulesDir, root, runtimeNode } from "./lib/project.mjs";

const coverageDir = join(cacheDir, "coverage");
const rawDir = join(coverageDir, "raw");
const reportDir = join(coverageDir, "report");

function run(script, args, env = {}) {
  const options = { cwd: root, stdio: "inherit", env: { ...process.env, ...env } };
  return spawnSync(runtimeNode(), [script, ...args], options).status ?? 1;
}

/** The first two folders below src, such as `readers/effects`. */
function folderOf(file) {
  const folders = relative(join(root, "src"), file).split("/").slice(0, -1);
  return folders.slice(0, 2).join("/") || ".";
}

function printTable() {
  const { total, ...files } = JSON.parse(
    readFileSync(join(reportDir, "coverage-summary.json"), "utf8"),
  );
  const byFolder = new Map();
  for (const [file, { lines, branches }] of Object.entries(files)) {
    const sum = byFolder.get(folderOf(file)) ?? { lines: [0, 0], branches: [0, 0] };
    for (const [kind, { covered, total: all }] of Object.entries({ lines, branches })) {
      sum[kind][0] += covered;
      sum[kind][1] += all;
    }
    byFolder.set(folderOf(file), sum);
  }
  const rows = [...byFolder].sort(([a], [b]) => (a < b ? -1 : 1));
  rows.push([
    "all",
    {
      lines: [total.lines.covered, total.lines.total],
      branches: [total.branches.covered, total.branches.total],
    },
  ]);
  const percent = ([covered, all]) => `${all === 0 ? 100 : Math.round((100 * covered) / all)} %`;
  process.stdout.write("\n| Folder of src | Lines | Branches | Lines in it |\n|---|---|---|---|\n");
  for (const [folder, { lines, branches }] of rows)
    process.stdout.write(
      `| ${folder} | ${percent(lines)} | ${percent(branches)} | ${lines[1]} |\n`,
    );
}

rmSync(coverageDir, { recursive: true, force: true });
const tested = run(join(root, "scripts", "test.mjs"), process.argv.slice(2), {
  NODE_V8_COVERAGE: rawDir,
});
const reporters = ["--reporter=json-summary", "--reporter=html"];
const reported = run(join(modulesDir, "c8", "bin", "c8.js"), [
  ...["report", "--all", "--src=src", "--include=src/**/*.ts", "--merge-async"],
  ...[`--temp-directory=${rawDir}`, `--reports-dir=${reportDir}`, ...reporters],
]);
if (reported === 0) printTable();
process.exitCode = tested || reported;
