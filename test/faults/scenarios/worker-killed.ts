// One of two workers is killed, and the other worker takes all requests until the killed worker is
// replaced.

import type { Scenario } from "../scenario.ts";

const replacedMsMax = 30_000;
const pollMs = 20;

export const workerKilled: Scenario = {
  name: "worker-killed",
  title: "one of two workers is killed (SIGKILL)",
  topology: "single",
  env: { PENSTOCK_WORKERS: "2" },
  faultMs: { short: 0, full: 500 },
  mayRefuse: true,
  mustRecover: true,
  mayLoseConnections: true,
  async run({ gateway, faultMs, hold, acknowledged }) {
    for (let worker = 0; worker < 2; worker++) {
      const pid = gateway.workers()[worker];
      if (pid === undefined) throw new Error("kill a worker: the gateway has no worker");
      process.kill(pid, "SIGKILL");
      await acknowledged(50);
      await hold(faultMs);
      for (
        const deadline = performance.now() + replacedMsMax;
        gateway.workers().includes(pid);
        await hold(pollMs)
      ) {
        if (performance.now() > deadline) throw new Error("kill a worker: it was not replaced");
      }
    }
  },
};
