// The cost of three replicas for Penstock and the baseline, and of distance from the store. Also
// measures how long acknowledgements stop when the stream's leader is killed. The three nodes are
// on loopback.

import { setTimeout as delay } from "node:timers/promises";
import { type Bench, type Cell, runCells } from "../harness/bench.ts";
import { openSession, type Session } from "../harness/session.ts";
import { batches, singles, singlesOf } from "./loads.ts";

const replicaCount = 3;
const projects = 100;
const latesMs = [0, 1, 5];
const killRate = 2_000;
const killedAfterMs = 3_000;
const killSeconds = 15;

export async function replicas(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 1 : 2;
  const rounds = bench.rounds(3);
  const shared = { rounds, projects, replicas: replicaCount, warmUpSeconds: 1, warmEach: false };
  await runCells(bench, {
    ...shared,
    group: "replicas",
    cells: (["always", "lazy"] as const).flatMap((sync): Cell[] => [
      { variant: "penstock", sync },
      { variant: "fastify", sync },
    ]),
    loads: () => [
      singles(128, seconds),
      singles(512, seconds),
      batches(100, seconds),
      singlesOf(projects, seconds),
    ],
  });
  await runCells(bench, {
    ...shared,
    group: "distance",
    cells: latesMs.map((lateMs): Cell => ({ variant: "penstock", sync: "always", lateMs })),
    loads: () => [singles(128, seconds), singles(512, seconds), batches(100, seconds)],
    // Time until the gateway has measured the distance of the store.
    warmUpSeconds: 3,
  });
  for (let round = 1; round <= rounds; round++) await killLeader(bench, round);
}

async function killLeader(bench: Bench, round: number): Promise<void> {
  const session = await openSession({
    variant: "penstock",
    sync: "always",
    replicas: replicaCount,
    closedLoop: bench.closedLoop,
  });
  try {
    await session.warmUp(singles(128, 1), 1);
    bench.note({
      group: "leader",
      scenario: `leader killed at ${killRate} single events/s`,
      variant: "penstock",
      sync: "always",
      round,
      values: await loadBesideKill(session),
    });
  } finally {
    await session.close();
  }
}

async function loadBesideKill({ warmUp, nats }: Session): Promise<Record<string, number>> {
  if (nats === undefined) throw new Error("kill the leader: there is no nats-server");
  await nats.stored("one a message");
  await nats.purge();
  const load = { ...singles(256, killSeconds), rate: killRate };
  const running = warmUp(load, killSeconds);
  await delay(killedAfterMs);
  await nats.killLeader();
  const { requests, refused, longestGapMs, latencyMs } = await running;
  const acknowledged = requests - refused;
  // Compares only numbers. `npm run faults -- cluster-leader-killed` checks each event.
  const { events } = await nats.stored("by header");
  if (events < acknowledged)
    throw new Error(`leader killed: ${acknowledged} events acknowledged, ${events} stored`);
  return {
    longestGapMs: longestGapMs ?? Number.NaN,
    maxMs: latencyMs?.max ?? Number.NaN,
    acknowledged,
    refused,
    stored: events,
  };
}
