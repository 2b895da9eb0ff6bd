// Prepares a fresh clone. Runs on the host's Node 18. May be interrupted and run again.

import { addonBuilds, addonsNotBuilt, compilersMax } from "./lib/addon.mjs";
import { bringDuckdb, isDuckdbCurrent } from "./lib/duckdb.mjs";
import { arePackagesCurrent, buildDist, installPackages, isDistCurrent } from "./lib/install.mjs";
import { takeLock } from "./lib/lock.mjs";
import { bringNatsServer, requireNatsServer } from "./lib/nats-server.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { announce, root, SetupError } from "./lib/project.mjs";
import { runProgram } from "./lib/runner.mjs";

const withTools = process.argv.includes("--tools");
const withParquet = withTools || process.argv.includes("--parquet");

async function setUp(runner) {
  requireNode();
  const giveBack = await lockOrNothingToDo(runner);
  if (giveBack === undefined) return;
  try {
    if (!arePackagesCurrent({ withTools }) || addonsNotBuilt().length > 0) requirePrograms();
    requireNatsServer();
    const parquet = withParquet ? [() => bringDuckdb(runner)] : [];
    await runner.together([
      () => bringNatsServer(runner),
      () => installAndBuild(runner),
      ...parquet,
    ]);
  } catch (error) {
    throw isNotWritable(error) ? notWritable(error) : error;
  } finally {
    giveBack();
  }
}

async function installAndBuild(runner) {
  await installPackages(runner, { withTools });
  await runner.together([...addonBuilds(runner), () => buildDist(runner)], compilersMax());
}

/** undefined if the checkout is read-only and complete. */
async function lockOrNothingToDo(runner) {
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

await runProgram(setUp, (message) => announce(`stopped: ${message}`));
