// The latency of project B's single events alone, and while nine tenths of project A's requests get
// 429. A third run sends A's load to another server, to show how much A's client costs on the same
// cores.

import { setTimeout as delay } from "node:timers/promises";
import { setQuota } from "../../src/gateway/projects/registry/commands.ts";
import type { Bench } from "../harness/bench.ts";
import { singleBody } from "../harness/bodies.ts";
import { type Load, type LoadRun, runLoad } from "../harness/load.ts";
import { prefix, projectIdOf } from "../harness/nats.ts";
import { treeCpuSeconds } from "../harness/process-stats.ts";
import { openSession, type Session } from "../harness/session.ts";
import { singles } from "./loads.ts";

const limited = 0;
const neighbour = 1;
const limitPerSecond = 500;
const floodPerSecond = 10 * limitPerSecond;
const neighbourPerSecond = 1_000;
const burstSeconds = 0.2;
const seconds = 4;
/** A's burst is then used up, and its connections are open. */
const settleMs = 500;
/** From the end of B's load to the end of A's load, because both generators start slowly. */
const slackSeconds = 1.5;
const limitTolerance = 0.1;

const sides = ["alone", "elsewhere", "flooded"] as const;
type Side = (typeof sides)[number];
const titles: Readonly<Record<Side, string>> = {
  alone: "B alone",
  elsewhere: "B, the load of A at another server",
  flooded: "B beside A at 10 × its limit",
};
export const ratioScenario = "p99 of B beside A, against alone";
const where = { group: "fairness", variant: "penstock", sync: "always" } as const;

export async function fairness(bench: Bench): Promise<void> {
  const { closedLoop } = bench;
  const rounds = bench.rounds(2);
  const session = await openSession({
    variant: "penstock",
    sync: "always",
    projects: 2,
    closedLoop,
  });
  try {
    const other = await openSession({ variant: "ceiling", sync: "lazy", closedLoop });
    try {
      const quota = { eventsPerSecond: limitPerSecond, burstSeconds };
      await setQuota(session.nats!.connection, {
        prefix,
        replicas: 1,
        id: projectIdOf(limited),
        quota,
      });
      await session.warmUp(loadOf(neighbour, neighbourPerSecond), 1);
      for (let round = 1; round <= rounds; round++) {
        const p99Ms: Partial<Record<Side, number>> = {};
        for (const side of round % 2 === 0 ? sides.toReversed() : sides) {
          const floodUrl = {
            alone: undefined,
            elsewhere: other.server.url,
            flooded: session.server.url,
          }[side];
          const values = await measure(bench, session, floodUrl);
          p99Ms[side] = values["p99"] ?? Number.NaN;
          bench.note({ ...where, scenario: titles[side], round, values });
        }
        const { alone = Number.NaN, elsewhere = Number.NaN, flooded = Number.NaN } = p99Ms;
        const values = { p99Ratio: flooded / alone, p99RatioElsewhere: elsewhere / alone };
        bench.note({ ...where, scenario: ratioScenario, round, values });
      }
    } finally {
      await other.close();
    }
  } finally {
    await session.close();
  }
}

function loadOf(project: number, rate: number): Load {
  return { ...singles(32, seconds), bodies: [singleBody(0, project)], rate };
}

/** A's load goes to `floodUrl`. Throws unless storage and limits are exact. */
async function measure(
  { closedLoop }: Bench,
  { server, nats }: Session,
  floodUrl: string | undefined,
): Promise<Record<string, number>> {
  await nats!.stored("one a message");
  await nats!.purge();
  const flooding = floodUrl === undefined ? undefined : startFlood(floodUrl, closedLoop);
  if (flooding !== undefined) await delay(settleMs);
  const cpuBefore = treeCpuSeconds(server.child.pid);
  const beganMs = performance.now();
  const run = await runLoad(server.url, loadOf(neighbour, neighbourPerSecond), closedLoop);
  const gatewayCores =
    (treeCpuSeconds(server.child.pid) - cpuBefore) / ((performance.now() - beganMs) / 1_000);
  if (flooding?.ended) throw new Error("fairness: A ended before B");
  const flood = await flooding?.run;
  const stored = await nats!.stored("by header");
  const ofA = floodUrl === server.url && flood !== undefined ? flood.requests - flood.refused : 0;
  if (run.refused > 0 || run.failed > 0 || stored.events !== run.requests + ofA) {
    throw new Error(
      `fairness: of B ${run.requests} answered, ${run.refused} refused, ${run.failed} failed; of A ${ofA} acknowledged; ${stored.events} stored`,
    );
  }
  if (ofA > 0) {
    const allowed = limitPerSecond * (flood!.seconds + burstSeconds);
    if (Math.abs(ofA / allowed - 1) > limitTolerance)
      throw new Error(`fairness: A has ${ofA} stored, may ${allowed}`);
  }
  return {
    ...run.latencyMs,
    gatewayCores,
    refusedPerSecond: flood === undefined ? 0 : flood.refused / flood.seconds,
  };
}

function startFlood(
  url: string,
  closedLoop: Bench["closedLoop"],
): { readonly run: Promise<LoadRun>; ended: boolean } {
  const load = {
    ...loadOf(limited, floodPerSecond),
    seconds: seconds + settleMs / 1_000 + slackSeconds,
  };
  const run = runLoad(url, load, closedLoop);
  const flood = { run, ended: false };
  const end = (): void => {
    flood.ended = true;
  };
  run.then(end, end);
  return flood;
}
