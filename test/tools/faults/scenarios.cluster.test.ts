import { clusterRuns } from "./scenario-table.ts";
import { testShortRuns } from "./short-run.ts";

testShortRuns(clusterRuns);
