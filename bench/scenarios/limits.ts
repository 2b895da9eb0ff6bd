// The cost of large bodies for other requests: memory, delay of the event loop, and latency of
// small requests. Only Penstock with the durable setting.

import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../harness/bench.ts";
import { type LoadRun, runLoad } from "../harness/load.ts";
import { memoryBytes } from "../harness/process-stats.ts";
import { openSession, type Session } from "../harness/session.ts";
import { huge, singles } from "./loads.ts";

const hugeConnections = 4;
const neighbours = 2;
const smallRate = 200;
const settleMs = 1_500;
/**
 * From the end of small requests to the end of large requests, because both generators start
 * slowly.
 */
const slackSeconds = 2;
/** The result is the minimum of this time, because buffers are cached for 10 s. */
const restMs = 22_000;

export async function limits(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  for (let round = 1; round <= rounds; round++) {
    const session = await openSession({
      variant: "penstock",
      sync: "always",
      closedLoop: bench.closedLoop,
    });
    try {
      await session.warmUp(singles(128, 1), 1);
      const note = (scenario: string, values: Record<string, number>) =>
        bench.note({
          group: "limits",
          scenario,
          variant: "penstock",
          sync: "always",
          round,
          values,
        });
      note(
        "large bodies, 4 at a time",
        await memoryUnderLargeBodies(session, bench.quick ? 8 : 24),
      );
      note("small requests beside large ones", await besideLargeBodies(session, bench));
      note("memory at rest after load", { restBytes: await restBytes(session, restMs) });
    } finally {
      await session.close();
    }
  }
}

async function memoryUnderLargeBodies(
  session: Session,
  amount: number,
): Promise<Record<string, number>> {
  const { pid } = session.server.child;
  const beforeBytes = memoryBytes(pid, "VmRSS");
  const load = { ...huge(amount), connections: hugeConnections };
  const { peakBytes } = await session.measure(load);
  return {
    beforeBytes,
    peakBytes,
    aboveBytes: peakBytes - beforeBytes,
    eachBodyBytes: load.bodies[0]?.length ?? 0,
  };
}

async function besideLargeBodies(session: Session, bench: Bench): Promise<Record<string, number>> {
  const seconds = 3;
  const small = { ...singles(32, seconds), rate: smallRate };
  await session.nats?.purge();
  const alone = await runLoad(session.server.url, small, bench.closedLoop);
  await session.nats?.stored("one a message");
  await session.nats?.purge();
  const { amount: _, ...endless } = huge(neighbours);
  const large = {
    ...endless,
    seconds: seconds + settleMs / 1_000 + slackSeconds,
    connections: neighbours,
  };
  let neighbourEnded = false;
  const [neighbour, { during, loopDelayP99Ms }] = await Promise.all([
    runLoad(session.server.url, large, bench.closedLoop).finally(() => {
      neighbourEnded = true;
    }),
    besideThem(),
  ]);

  async function besideThem(): Promise<{ during: LoadRun; loopDelayP99Ms: number }> {
    await delay(settleMs);
    // Each read of the gauge covers the time since the last read, so this read starts a new window.
    await loopDelayP99(session);
    const run = await runLoad(session.server.url, small, bench.closedLoop);
    const seconds = await loopDelayP99(session);
    if (neighbourEnded) throw new Error("the large bodies ended before the small requests");
    return { during: run, loopDelayP99Ms: seconds * 1_000 };
  }

  const acknowledged = during.requests + neighbour.requests * large.eventsPerRequest;
  const stored = await session.nats?.stored("by header");
  const refused = during.refused + during.failed + neighbour.refused + neighbour.failed;
  if (stored?.events !== acknowledged || refused > 0) {
    throw new Error(
      `${acknowledged} events acknowledged, ${stored?.events} stored, ${refused} requests not answered 200`,
    );
  }
  const aloneP99Ms = alone.latencyMs?.p99 ?? Number.NaN;
  const besideP99Ms = during.latencyMs?.p99 ?? Number.NaN;
  return {
    loopDelayP99Ms,
    aloneP99Ms,
    besideP99Ms,
    p99Ratio: besideP99Ms / aloneP99Ms,
    largeEventsPerSecond: (neighbour.requests * large.eventsPerRequest) / neighbour.seconds,
  };
}

async function loopDelayP99(session: Session): Promise<number> {
  const text = await (await fetch(`${session.server.adminUrl}/metrics`)).text();
  return Number(/^penstock_event_loop_delay_seconds\{stat="p99"\} (\S+)$/m.exec(text)?.[1]);
}

async function restBytes(session: Session, watchMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (const until = performance.now() + watchMs; performance.now() < until; ) {
    least = Math.min(least, memoryBytes(session.server.child.pid, "VmRSS"));
    await delay(100);
  }
  return least;
}
