// On the oldest nats-server, which says of a frame that waits for the followers that it is stored
// already.

import { test } from "vitest";
import { oldestNatsServer } from "../../testkit/nats-server.ts";
import { clusterFollowersFrozenLeaderKilled } from "../../tools/faults/scenarios/cluster-followers-frozen-leader-killed.ts";
import { shortRun } from "../tools/faults/short-run.ts";

test("what only the leader has is not acknowledged", async () => {
  await shortRun(clusterFollowersFrozenLeaderKilled, oldestNatsServer());
}, 180_000);
