// Prepares a fresh clone for `npm run up`: packages, the pinned Node, the addons, dist/,
// nats-server. Runs on the host's Node 18 before anything is installed. Every step is skipped if
// there is nothing to do, and may be interrupted at any point and run again: no program that it
// started is left running.

import { existsSync } from "node:fs";
import { constants } from "node:os";
import { addonBuilds, addonsNotBuilt, compilersMax, isPlain } from "./lib/addon.mjs";
import { bringDuckdb, isDuckdbCurrent } from "./lib/duckdb.mjs";
import { arePackagesCurrent, buildDist, installPackages, isDistCurrent } from "./lib/install.mjs";
import { noteGroups, takeLock } from "./lib/lock.mjs";
import { bringNatsServer, requireNatsServer } from "./lib/nats-server.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { announce, modulesDir, root, SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";
import { compileSimdjsonAhead, removeSimdjsonAhead } from "./lib/simdjson-ahead.mjs";

/** Tests, benches and the other tools have separate packages, which `up` does not install. */
const withTools = process.argv.includes("--tools");
/** The Parquet writer is fetched only for users who need it, and for tests. */
const withParquet = withTools || process.argv.includes("--parquet");
const runner = createRunner({ noteGroups });

async function setUp() {
  requireNode();
  const giveBack = await lockOrNothingToDo();
  if (giveBack === undefined) return;
  try {
    if (!arePackagesCurrent({ withTools }) || addonsNotBuilt().length > 0) requirePrograms();
    requireNatsServer();
    const parquet = withParquet ? [() => bringDuckdb(runner)] : [];
    await runner.together([() => bringNatsServer(runner), () => installAndBuild(), ...parquet]);
  } finally {
    giveBack();
  }
}

async function installAndBuild() {
  const isAhead = !existsSync(modulesDir) && isPlain(root) && compilersMax() > 1;
  let simdjson;
  try {
    await runner.together([
      () => installPackages(runner, { withTools }),
      async () => {
        if (isAhead) simdjson = await compileSimdjsonAhead(runner);
      },
    ]);
    const builds = addonBuilds(runner, { simdjson });
    await runner.together([...builds, () => buildDist(runner)], compilersMax());
  } finally {
    removeSimdjsonAhead();
  }
}

/** Undefined if the checkout is not writable and nothing must be written. */
async function lockOrNothingToDo() {
  try {
    return await takeLock(runner);
  } catch (error) {
    if (!isNotWritable(error)) throw error;
    const isBuilt = addonsNotBuilt().length === 0 && isDistCurrent();
    const hasParquet = !withParquet || isDuckdbCurrent();
    if (arePackagesCurrent({ withTools }) && isBuilt && hasParquet) return undefined;
    throw notWritable(error);
  }
}

function isNotWritable({ code }) {
  return code === "EACCES" || code === "EPERM" || code === "EROFS";
}

function notWritable({ code, path }) {
  return new SetupError(
    [
      `the checkout cannot be written by this user (${code}: ${path ?? root})`,
      `  set it up as the user it belongs to, or give it to this one: sudo chown -R "$(id -un)" ${root}`,
      "  or take a copy of your own: git clone, or cp -r",
    ].join("\n"),
  );
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError) && !isNotWritable(error)) throw error;
  announce(`stopped: ${(isNotWritable(error) ? notWritable(error) : error).message}`);
  process.exitCode = 1;
}
// A signal that arrived during the last step is handled now.
await new Promise((done) => setImmediate(done));
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
