// The CPU cost of an event in the gateway and in three nodes, over partitions and projects. It is
// the basis of the sizing guide, and a check that the cost stays constant with growth.

import { type Bench, type Cell, runCells } from "../harness/bench.ts";
import { batches, batchesOf, singlesOf } from "./loads.ts";

interface Layout {
  readonly partitions: number;
  readonly projects: number;
  readonly gateways: number;
}

const usual: Layout = { partitions: 1, projects: 1_000, gateways: 1 };
/**
 * Each partition has the same load and number of projects. If the same load were split among more
 * partitions, fewer events would share an fsync.
 */
const layouts: readonly Layout[] = [
  ...[1, 100, 1_000, 10_000].map((projects) => ({ ...usual, projects })),
  ...[4, 8, 16].map((partitions) => ({ ...usual, partitions, projects: 1_000 * partitions })),
  { partitions: 8, projects: 8_000, gateways: 4 },
];
const connectionsOfPartition = { singles: 128, batches: 32 };
const batchEvents = 10;

/** Several gateways share the port, each with its own connection to the store. */
export async function cost(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  const seconds = bench.quick ? 1 : 2;
  for (const { partitions, projects, gateways } of layouts) {
    const cell: Cell = {
      variant: "penstock",
      sync: "always",
      ...(gateways === 1 ? {} : { workers: gateways }),
    };
    const place = `${counted(partitions, "partition")}, ${counted(projects, "project")}`;
    await runCells(bench, {
      group: "cost",
      cells: [cell],
      rounds,
      projects,
      partitions,
      replicas: 3,
      loads: () =>
        [
          singlesOf(projects, seconds, partitions * connectionsOfPartition.singles),
          {
            ...batchesOf(projects, batchEvents, seconds),
            connections: partitions * connectionsOfPartition.batches,
          },
          // Bodies of many projects would exceed the client's memory.
          ...(projects === 1 ? [batches(100, seconds)] : []),
        ].map((load) => ({ ...load, name: `${load.name.replace(/,.*/, "")}, ${place}` })),
      warmUpSeconds: 1,
      warmEach: false,
    });
  }
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
