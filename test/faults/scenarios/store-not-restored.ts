// nats-server restarts with less space than the streams require, so it does not restore them. The
// gateway must not create new streams in their place.

import type { Scenario } from "../scenario.ts";

export const storeNotRestored: Scenario = {
  name: "store-not-restored",
  title: "nats-server restarts with too little space for the streams, then with enough",
  topology: "single",
  faultMs: { short: 500, full: 4_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, untilRefused }) {
    const [node] = store.nodes;
    await node!.restart({ maxFileStore: 1_048_576 });
    // nats-server 2.10 answers that the streams do not exist. nats-server 2.15 answers that it has
    // no space.
    await untilRefused("503 ");
    await hold(faultMs);
    await node!.restart();
  },
};
