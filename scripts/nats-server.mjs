// Fetches a nats-server if the host has none. `penstock up` runs this file when it finds none.

import { takeLock } from "./lib/lock.mjs";
import { bringNatsServer, requireNatsServer } from "./lib/nats-server.mjs";
import { announce } from "./lib/project.mjs";
import { runProgram } from "./lib/runner.mjs";

async function fetchNatsServer(runner) {
  requireNatsServer();
  const giveBack = await takeLock(runner);
  try {
    await bringNatsServer(runner);
  } finally {
    giveBack();
  }
}

await runProgram(fetchNatsServer, (message) => announce(`stopped: ${message}`));
