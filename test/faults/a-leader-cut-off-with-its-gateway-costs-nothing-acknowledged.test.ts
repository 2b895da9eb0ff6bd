// On the oldest nats-server: it says of a frame that it has sent on to nobody that it is stored
// already.

import { test } from "vitest";
import { oldestNatsServer } from "../../testkit/nats-server.ts";
import { clusterLeaderCutWithGateway } from "../../tools/faults/scenarios/cluster-leader-cut-with-gateway.ts";
import { networkKindsHere } from "../tools/faults/network-kinds.ts";
import { shortRun } from "../tools/faults/short-run.ts";

// Namespaces where they can be made: they cut as a network does.
test.each(networkKindsHere().slice(-1))(
  "what a leader without a quorum says of a frame acknowledges nothing, cut off by %s",
  async (network) => {
    await shortRun(clusterLeaderCutWithGateway, oldestNatsServer(), network);
  },
  180_000,
);
