// How long a request takes at a fixed rate: at half and at four fifths of the rate that each server
// has just shown it can do, measured from the time a request was due. Never at the peak, where
// latency is the length of the queue.

import { type Bench, inOrder } from "../harness/bench.ts";
import { openSession } from "../harness/session.ts";
import { singles } from "./loads.ts";

const connections = 128;
const shares = [0.5, 0.8];
/**
 * The client needs a second until its code is compiled. At half of Penstock's peak, 24,000 requests
 * a second, p99 of the first two seconds was 20 ms, that of eight seconds behind them 5 ms.
 */
const times = { seconds: 8, settleSeconds: 2 };
const quickTimes = { seconds: 3, settleSeconds: 1 };

export function latencyScenario(share: number): string {
  return `at ${share * 100} % of its peak`;
}

export async function latency(bench: Bench): Promise<void> {
  const variants = ["penstock", "fastify"] as const;
  const syncs = bench.quick ? (["always"] as const) : (["always", "lazy"] as const);
  const cells = syncs.flatMap((sync) => variants.map((variant) => ({ variant, sync })));
  const rounds = bench.rounds(2);
  for (let round = 1; round <= rounds; round++) {
    for (const cell of inOrder(cells, round)) {
      const session = await openSession({ ...cell, closedLoop: bench.closedLoop });
      try {
        const load = singles(connections, 1);
        await session.warmUp(load, 1);
        const peak = (await session.measure(load)).requestsPerSecond;
        for (const share of shares) {
          const rate = Math.round(peak * share);
          const { run, serverCores, clientCores } = await session.measure({
            ...load,
            ...(bench.quick ? quickTimes : times),
            rate,
          });
          const values = {
            rate,
            achieved: run.requests / run.seconds,
            serverCores,
            clientCores,
            ...run.latencyMs,
          };
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
  }
}
