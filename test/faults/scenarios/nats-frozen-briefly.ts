// nats-server stands still for less than a request may take, as during a long pause of its disk:
// frames wait and are sent again.

import type { Scenario } from "../scenario.ts";

export const natsFrozenBriefly: Scenario = {
  name: "nats-frozen-briefly",
  title: "nats-server stands still (SIGSTOP) for less than the request deadline",
  topology: "single",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "500", PENSTOCK_REQUEST_TIMEOUT_MS: "20000" },
  faultMs: { short: 1_500, full: 3_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold }) {
    const [node] = store.nodes;
    node!.freeze();
    await hold(faultMs);
    node!.thaw();
  },
};
