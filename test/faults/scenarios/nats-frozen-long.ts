// nats-server stands still for longer than a request may take: clients are told that nobody knows,
// and send again.

import type { Scenario } from "../scenario.ts";

export const natsFrozenLong: Scenario = {
  name: "nats-frozen-long",
  title: "nats-server stands still (SIGSTOP) for longer than the request deadline",
  topology: "single",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "300", PENSTOCK_REQUEST_TIMEOUT_MS: "1000" },
  faultMs: { short: 2_500, full: 12_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold }) {
    const [node] = store.nodes;
    node!.freeze();
    await hold(faultMs);
    node!.thaw();
  },
};
