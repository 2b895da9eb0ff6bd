// Brings a fresh clone to where `npm run up` works: packages, the pinned Node, the addons, dist/, nats-server.
// Runs on the host's Node 18 before anything is installed. Every step is skipped when there is nothing to do, and may
// be interrupted at any point and run again: nothing that it started is left running.

import { constants } from "node:os";
import { addonsNotBuilt, buildAddons } from "./lib/addon.mjs";
import { arePackagesCurrent, buildDist, installPackages } from "./lib/install.mjs";
import { noteGroup, takeLock } from "./lib/lock.mjs";
import { bringNatsServer, requireNatsServer } from "./lib/nats-server.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { announce, SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroup });

async function setUp() {
  requireNode();
  const giveBack = await takeLock(runner);
  try {
    if (!arePackagesCurrent() || addonsNotBuilt().length > 0) requirePrograms();
    requireNatsServer();
    await installPackages(runner);
    await buildAddons(runner);
    await buildDist(runner);
    await bringNatsServer(runner);
  } finally {
    giveBack();
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => runner.interrupt(signal));
try {
  await setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  announce(`stopped: ${error.message}`);
  process.exitCode = 1;
}
// A signal that came during the last step is seen now.
await new Promise((done) => setImmediate(done));
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
