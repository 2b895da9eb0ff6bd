// Says where a nats-server of the oldest supported line is, on the last line of standard output,
// having fetched it if need be. Run by the tests and by nothing else.

import { constants } from "node:os";
import { noteGroup, takeLock } from "./lib/lock.mjs";
import { fetchOldestNatsServer, oldestNatsServer } from "./lib/nats-server.mjs";
import { SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroup });

async function findOldest() {
  if (oldestNatsServer() !== undefined) return oldestNatsServer();
  const giveBack = await takeLock(runner);
  try {
    if (oldestNatsServer() === undefined) await fetchOldestNatsServer(runner);
  } finally {
    giveBack();
  }
  return oldestNatsServer();
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  process.stdout.write(`${await findOldest()}\n`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
