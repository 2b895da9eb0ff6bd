// The scan alone: the addon, JSON.parse, the npm package simdjson and the reference scanner, in
// bytes per second. Each contender is compared with JSON.parse before the measurement.

import { join } from "node:path";
import { type Bench, inOrder } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { installSimdjson } from "../scan/simdjson-package.ts";

const worker = join(import.meta.dirname, "..", "scan", "worker.ts");
const workerMsMax = 180_000;
const contenders = ["addon", "JSON.parse", "simdjson (npm)", "reference"];

export async function scan(bench: Bench): Promise<void> {
  const absence = bench.quick
    ? "the npm package simdjson is not part of a quick run"
    : installSimdjson();
  if (absence !== undefined) bench.remark(absence);
  const names = contenders.filter(
    (name) =>
      !(name === "simdjson (npm)" && absence !== undefined) &&
      !(name === "reference" && bench.quick),
  );
  const rounds = bench.rounds(5);
  for (let round = 1; round <= rounds; round++) {
    for (const name of inOrder(names, round)) {
      const child = startChild({
        program: process.execPath,
        args: ["--disable-warning=ExperimentalWarning", worker, name, bench.quick ? "0.1" : "0.15"],
        ipc: true,
      });
      const answer = await child.message<Record<string, number>>(workerMsMax);
      await child.end();
      for (const [shape, bytesPerSecond] of Object.entries(answer)) {
        bench.note({
          group: "scan",
          scenario: shape,
          variant: name,
          sync: "",
          round,
          values: { bytesPerSecond },
        });
      }
    }
  }
}
