// Says where HAProxy and nginx are, as JSON on the last line of standard output, having fetched
// them if need be. Run by the tests that put them before a gateway.

import { noteGroup, takeLock } from "./lib/lock.mjs";
import { proxies } from "./lib/proxies.mjs";
import { createRunner } from "./lib/runner.mjs";

const runner = createRunner({ noteGroup });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
const giveBack = await takeLock(runner);
try {
  const found = await proxies(runner);
  process.stdout.write(`${JSON.stringify(found)}\n`);
} finally {
  giveBack();
}
