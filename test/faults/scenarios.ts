import type { Scenario } from "./scenario.ts";
import { acksLost } from "./scenarios/acks-lost.ts";
import { clientsAbort } from "./scenarios/clients-abort.ts";
import { clockSteps } from "./scenarios/clock-steps.ts";
import { clusterBlockDamaged } from "./scenarios/cluster-block-damaged.ts";
import { clusterDiskLostWhileLagging } from "./scenarios/cluster-disk-lost-while-lagging.ts";
import { clusterFollowerKilled } from "./scenarios/cluster-follower-killed.ts";
import { clusterFollowersFrozenLeaderKilled } from "./scenarios/cluster-followers-frozen-leader-killed.ts";
import { clusterKilledWhileGrowing } from "./scenarios/cluster-killed-while-growing.ts";
import { clusterLeaderCutOff } from "./scenarios/cluster-leader-cut-off.ts";
import { clusterLeaderCutWithGateway } from "./scenarios/cluster-leader-cut-with-gateway.ts";
import { clusterLeaderFrozen } from "./scenarios/cluster-leader-frozen.ts";
import { clusterLeaderKilled } from "./scenarios/cluster-leader-killed.ts";
import { clusterLeaderPaused } from "./scenarios/cluster-leader-paused.ts";
import { clusterLeaderStepsDown } from "./scenarios/cluster-leader-steps-down.ts";
import { clusterLeaderlessSpell } from "./scenarios/cluster-leaderless-spell.ts";
import { clusterPagesLostAtOnce } from "./scenarios/cluster-pages-lost-at-once.ts";
import { clusterPagesLostWhileGrowing } from "./scenarios/cluster-pages-lost-while-growing.ts";
import { clusterPowerCutWhileLagging } from "./scenarios/cluster-power-cut-while-lagging.ts";
import { clusterQuorumLost } from "./scenarios/cluster-quorum-lost.ts";
import { clusterQuorumLostFarAway } from "./scenarios/cluster-quorum-lost-far-away.ts";
import { clusterRandomWalk } from "./scenarios/cluster-random-walk.ts";
import { clusterRollingRestart } from "./scenarios/cluster-rolling-restart.ts";
import { clusterTroubleWithoutEnd } from "./scenarios/cluster-trouble-without-end.ts";
import { connectionCut } from "./scenarios/connection-cut.ts";
import { connectionSlow } from "./scenarios/connection-slow.ts";
import { connectionStalled } from "./scenarios/connection-stalled.ts";
import { diskFull } from "./scenarios/disk-full.ts";
import { embeddedDiskFull } from "./scenarios/embedded-disk-full.ts";
import { embeddedNatsKilled } from "./scenarios/embedded-nats-killed.ts";
import { everythingKilled } from "./scenarios/everything-killed.ts";
import { gatewayKilled } from "./scenarios/gateway-killed.ts";
import { gatewayTerminated, gatewayTerminatedWhileFrozen } from "./scenarios/gateway-terminated.ts";
import { natsFrozenBriefly, natsFrozenLong } from "./scenarios/nats-frozen.ts";
import { natsKilled } from "./scenarios/nats-killed.ts";
import { natsKilledAgainAndAgain } from "./scenarios/nats-killed-again-and-again.ts";
import {
  projectFloodsInBursts,
  projectHasMuchBesideFlood,
  projectWithLittleBesideFlood,
} from "./scenarios/project-floods.ts";
import { serverLimit } from "./scenarios/server-limit.ts";
import { sharedFramesNatsKilled } from "./scenarios/shared-frames-nats-killed.ts";
import { storeNotRestored } from "./scenarios/store-not-restored.ts";
import { streamFull } from "./scenarios/stream-full.ts";
import { workerKilled } from "./scenarios/worker-killed.ts";

export const scenarios: readonly Scenario[] = [
  natsKilled,
  natsKilledAgainAndAgain,
  sharedFramesNatsKilled,
  natsFrozenBriefly,
  natsFrozenLong,
  streamFull,
  projectFloodsInBursts,
  projectHasMuchBesideFlood,
  projectWithLittleBesideFlood,
  serverLimit,
  storeNotRestored,
  diskFull,
  gatewayKilled,
  gatewayTerminated,
  gatewayTerminatedWhileFrozen,
  everythingKilled,
  workerKilled,
  embeddedNatsKilled,
  embeddedDiskFull,
  clientsAbort,
  clockSteps,
  acksLost,
  clusterFollowerKilled,
  clusterLeaderFrozen,
  clusterLeaderKilled,
  clusterLeaderlessSpell,
  clusterLeaderPaused,
  clusterLeaderStepsDown,
  clusterPowerCutWhileLagging,
  clusterQuorumLost,
  clusterQuorumLostFarAway,
  clusterRandomWalk,
  clusterRollingRestart,
  clusterTroubleWithoutEnd,
  clusterBlockDamaged,
  clusterDiskLostWhileLagging,
  clusterFollowersFrozenLeaderKilled,
  clusterKilledWhileGrowing,
  clusterLeaderCutOff,
  clusterLeaderCutWithGateway,
  clusterPagesLostAtOnce,
  clusterPagesLostWhileGrowing,
  connectionCut,
  connectionSlow,
  connectionStalled,
];
