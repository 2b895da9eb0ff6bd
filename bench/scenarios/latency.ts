// The latency of a request at half and at four fifths of the measured peak rate of each server.
// Measured from the time at which a request was due. Never measured at the peak, where latency
// depends on the length of the queue.

import { type Bench, inOrder } from "../harness/bench.ts";
import { setApart } from "../harness/cores.ts";
import { openSession, type Session } from "../harness/session.ts";
import { singles } from "./loads.ts";

const load = singles(128, 1);
const shares = [0.5, 0.8];
/**
 * In the warm-up, the client's code is being compiled. At 24,000 requests per second, p99 was 20 ms
 * in the first two seconds, and 5 ms later.
 */
const times = { seconds: 8, settleSeconds: 2 };
const quickTimes = { seconds: 3, settleSeconds: 1 };

export function latencyScenario(share: number): string {
  return `at ${share * 100} % of its peak`;
}

export const natsApartScenario = `${latencyScenario(0.5)}, nats-server on a core of its own`;

export async function latency(bench: Bench): Promise<void> {
  const variants = ["penstock", "fastify"] as const;
  const syncs = bench.quick ? (["always"] as const) : (["always", "lazy"] as const);
  const cells = syncs.flatMap((sync) => variants.map((variant) => ({ variant, sync })));
  const rounds = bench.rounds(2);
  for (let round = 1; round <= rounds; round++) {
    for (const cell of inOrder(cells, round)) {
      const session = await openSession({ ...cell, closedLoop: bench.closedLoop });
      try {
        const peak = await peakOf(session);
        for (const share of shares) {
          const values = await atRate(bench, session, Math.round(peak * share));
          bench.note({
            group: "latency",
            scenario: latencyScenario(share),
            ...cell,
            round,
            values,
          });
        }
      } finally {
        await session.close();
      }
    }
    if (!bench.quick) await natsApart(bench, round);
  }
}

async function natsApart(bench: Bench, round: number): Promise<void> {
  const cell = { variant: "penstock", sync: "always" } as const;
  const session = await openSession({ ...cell, closedLoop: bench.closedLoop });
  const together = setApart({
    alone: session.nats?.pids ?? [],
    others: [session.server.child.pid],
  });
  try {
    if (together === undefined) {
      bench.remark(
        `${natsApartScenario}: not measured, because there is no second core or no taskset`,
      );
      return;
    }
    const values = await atRate(bench, session, Math.round((await peakOf(session)) / 2));
    bench.note({ group: "latency", scenario: natsApartScenario, ...cell, round, values });
  } finally {
    together?.();
    await session.close();
  }
}

async function peakOf(session: Session): Promise<number> {
  await session.warmUp(load, 1);
  return (await session.measure(load)).requestsPerSecond;
}

async function atRate(
  { quick }: Bench,
  session: Session,
  rate: number,
): Promise<Record<string, number>> {
  const paced = { ...load, ...(quick ? quickTimes : times), rate };
  const { run, serverCores, clientCores } = await session.measure(paced);
  return {
    rate,
    achieved: run.requests / run.seconds,
    serverCores,
    clientCores,
    ...run.latencyMs,
  };
}
