// Says where a program is that tests run beside a gateway, on the last line of standard output,
// having fetched it if need be:
//   node scripts/test-program.mjs NAME
// NAME is clickhouse, kubectl, oldest-nats-server, postgres, prometheus, proxies or python-client.
// Of clickhouse, postgres and the last two it says it as JSON. A host that cannot have clickhouse
// or the last two goes without.

import { constants } from "node:os";
import { clickhouse } from "./lib/clickhouse.mjs";
import { fetchKubectl, kubectl } from "./lib/kubectl.mjs";
import { noteGroups, takeLock } from "./lib/lock.mjs";
import { fetchOldestNatsServer, oldestNatsServer } from "./lib/nats-server.mjs";
import { fetchPostgres, findPostgres } from "./lib/postgres.mjs";
import { SetupError } from "./lib/project.mjs";
import { fetchPrometheus, prometheusFolder } from "./lib/prometheus.mjs";
import { proxies } from "./lib/proxies.mjs";
import { pythonClient } from "./lib/python-client.mjs";
import { createRunner } from "./lib/runner.mjs";

const programs = {
  kubectl: { find: kubectl, fetch: fetchKubectl },
  "oldest-nats-server": { find: oldestNatsServer, fetch: fetchOldestNatsServer },
  postgres: { find: findPostgres, fetch: fetchPostgres },
  prometheus: { find: prometheusFolder, fetch: fetchPrometheus },
};
const optional = { clickhouse, proxies, "python-client": pythonClient };
const runner = createRunner({ noteGroups });

async function answer(name) {
  const found = programs[name]?.find();
  if (found !== undefined) return found;
  const giveBack = await takeLock(runner);
  try {
    if (name in optional) return JSON.stringify(await optional[name](runner));
    const { find, fetch } = programs[name];
    if (find() === undefined) await fetch(runner);
    return find();
  } finally {
    giveBack();
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  process.stdout.write(`${await answer(process.argv[2])}\n`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
