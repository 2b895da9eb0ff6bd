// Two of three nodes are killed, including the leader, and all nodes are far from the gateway.
// Requests of a shared frame reach their deadlines at different times. A frame must keep its bytes
// after any outcome.

import { whole } from "../cluster-watch.ts";
import type { Scenario } from "../scenario.ts";
import { clusterQuorumLost } from "./cluster-quorum-lost.ts";

const delayMs = 30;
const fullMs = 7_000;

export const clusterQuorumLostFarAway: Scenario = {
  ...clusterQuorumLost,
  name: "cluster-quorum-lost-far-away",
  title: `cluster of three, ${delayMs} ms away each way: two nodes are killed, and restarted`,
  env: {
    ...clusterQuorumLost.env,
    PENSTOCK_FRAME_SCOPE: "partition",
    PENSTOCK_ACK_TIMEOUT_MS: "700",
    PENSTOCK_REQUEST_TIMEOUT_MS: "2000",
  },
  faultMs: { short: 3_500, full: fullMs },
  shape: {
    singleConnections: 400,
    singlePauseMs: 100,
    singlePauseSpreadMs: 2_000,
    batchConnections: 4,
    batchPauseMs: 200,
    batchEvents: 20,
    largePauseMs: 1_000,
    importPauseMs: 50,
    largeImportEvery: 50,
  },
  delayMs: () => delayMs,
  async run(context) {
    const times = context.faultMs < fullMs ? 1 : 2;
    for (let time = 0; time < times; time++) {
      await clusterQuorumLost.run(context);
      await whole(context);
    }
  },
};
