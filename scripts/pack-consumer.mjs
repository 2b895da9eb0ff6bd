// Writes the package for programs that read events: npm run pack:consumer -- [folder].

import { resolve } from "node:path";
import { packConsumer } from "./lib/consumer-package.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { takeLock } from "./lib/lock.mjs";
import { requireNode } from "./lib/prerequisites.mjs";
import { runProgram } from "./lib/runner.mjs";

async function pack(runner) {
  // npm runs scripts in the project's folder, whatever the current folder of the user is.
  const folder = resolve(process.env.INIT_CWD ?? ".", process.argv[2] ?? ".");
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

await runProgram(pack, (message) => process.stderr.write(`pack:consumer: ${message}\n`));
