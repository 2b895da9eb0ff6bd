// Says where Prometheus and promtool are, on the last line of standard output, having fetched them
// if need be. Run by the tests of deploy/ and by nothing else: a gateway needs neither.

import { constants } from "node:os";
import { noteGroup, takeLock } from "./lib/lock.mjs";
import { SetupError } from "./lib/project.mjs";
import { fetchPrometheus, prometheusFolder } from "./lib/prometheus.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroup });

async function folder() {
  const found = prometheusFolder();
  if (found !== undefined) return found;
  const giveBack = await takeLock(runner);
  try {
    if (prometheusFolder() === undefined) await fetchPrometheus(runner);
  } finally {
    giveBack();
  }
  return prometheusFolder();
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  process.stdout.write(`${await folder()}\n`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
