// nats-server is frozen twice. A short freeze makes the gateway send frames again. A freeze beyond
// the request deadline gives clients an unknown outcome.

import type { Scenario } from "../scenario.ts";

const frozen = {
  topology: "single",
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold }) {
    const [node] = store.nodes;
    node!.freeze();
    await hold(faultMs);
    node!.thaw();
  },
} as const satisfies Partial<Scenario>;

export const natsFrozenBriefly: Scenario = {
  ...frozen,
  name: "nats-frozen-briefly",
  title: "nats-server is frozen (SIGSTOP) for less than the request deadline",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "500", PENSTOCK_REQUEST_TIMEOUT_MS: "20000" },
  faultMs: { short: 1_500, full: 3_000 },
};

export const natsFrozenLong: Scenario = {
  ...frozen,
  name: "nats-frozen-long",
  title: "nats-server is frozen (SIGSTOP) for longer than the request deadline",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "300", PENSTOCK_REQUEST_TIMEOUT_MS: "1000" },
  faultMs: { short: 2_500, full: 12_000 },
};
