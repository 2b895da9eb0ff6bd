// Says where a Python with PostHog's client is, as JSON on the last line of standard output, having
// set it up if need be. Run by the tests of that client.

import { noteGroup, takeLock } from "./lib/lock.mjs";
import { pythonClient } from "./lib/python-client.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroup });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
const giveBack = await takeLock(runner);
try {
  process.stdout.write(`${JSON.stringify(await pythonClient(runner))}\n`);
} finally {
  giveBack();
}
