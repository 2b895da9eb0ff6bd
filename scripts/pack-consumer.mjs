// Writes the package for programs that read events into a folder: npm run pack:consumer --
// [folder]. npm installs it from there by its path.

import { constants } from "node:os";
import { resolve } from "node:path";
import { packConsumer } from "./lib/consumer-package.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { noteGroups, takeLock } from "./lib/lock.mjs";
import { requireNode } from "./lib/prerequisites.mjs";
import { exitCodeOf, SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroups });

async function pack(target = ".") {
  // npm runs scripts in the project, wherever it was called.
  const folder = resolve(process.env.INIT_CWD ?? ".", target);
  requireNode();
  const giveBack = await takeLock(runner);
  try {
    await installPackages(runner);
    await buildDist(runner);
    process.stdout.write(`${await packConsumer(runner, folder)}\n`);
  } finally {
    giveBack();
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  await pack(process.argv[2]);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`pack:consumer: ${error.message}\n`);
  process.exitCode = exitCodeOf(error);
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
