// Faults of the nodes of a cluster and of the network between them, also several at a time.

import { clusterRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(clusterRuns);
