// Faults of the network between the gateway and nats-server, and between the nodes of a cluster.

import { networkRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(networkRuns);
