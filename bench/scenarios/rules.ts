// CPU time of an event with different rules, without HTTP and NATS. One process measures all rules
// in turn, so that each round compares them under the same conditions.

import { join } from "node:path";
import type { Bench } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";

const worker = join(import.meta.dirname, "..", "rules", "worker.ts");
const workerMsMax = 180_000;

export async function rules(bench: Bench): Promise<void> {
  const child = startChild({
    program: process.execPath,
    args: [
      "--disable-warning=ExperimentalWarning",
      worker,
      bench.quick ? "0.1" : "0.3",
      String(bench.rounds(7)),
    ],
    ipc: true,
  });
  const answer = await child.message<Record<string, Record<string, number[]>>>(workerMsMax);
  await child.end();
  for (const [scenario, results] of Object.entries(answer))
    for (const [variant, all] of Object.entries(results))
      for (const [index, cpuNs] of all.entries())
        bench.note({
          group: "rules",
          scenario: `${scenario}: ${variant}`,
          variant,
          sync: "",
          round: index + 1,
          values: { cpuNs },
        });
}
