// Faults of the nodes of a cluster: kills, power cuts, disks, and several of them at a time.

import { clusterRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(clusterRuns);
