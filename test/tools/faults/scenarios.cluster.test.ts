// Faults of the nodes of a cluster and of their network, including several faults at a time.

import { clusterRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(clusterRuns);
