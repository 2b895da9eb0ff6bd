// The throughput in events per second. The loads with a budget run five rounds of every variant.
// The other loads run only for Penstock and the baseline.

import { type Bench, type Cell, runCells } from "../harness/bench.ts";
import type { Load } from "../harness/load.ts";
import { batches, huge, singles, singlesOf, singlesOfName } from "./loads.ts";

function hugeAmount({ variant }: Cell, quick: boolean): number {
  if (variant === "penstock") return quick ? 8 : 16;
  return 2;
}

const both = ["always", "lazy"] as const;
const penstockAndBaseline = both.flatMap((sync) => [
  { variant: "penstock" as const, sync },
  { variant: "fastify" as const, sync },
]);

export async function throughput(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 1 : 2;
  await runCells(bench, {
    group: "throughput",
    cells: [...penstockAndBaseline, { variant: "ceiling", sync: "lazy" }],
    loads: (cell) => [
      singles(128, seconds),
      batches(100, seconds),
      // Variants with one fsync per event get no huge bodies, because 45,000 fsyncs in a row only
      // measure the disk.
      ...(cell.variant === "penstock" || (cell.variant === "fastify" && cell.sync === "lazy")
        ? [huge(hugeAmount(cell, bench.quick))]
        : []),
    ],
    rounds: bench.rounds(5),
    warmUpSeconds: 1,
    warmEach: true,
  });
  if (bench.quick) return;
  // This variant shows the part of the baseline's cost that the framework causes.
  await runCells(bench, {
    group: "throughput",
    cells: both.map((sync) => ({ variant: "uws-json", sync })),
    loads: () => [singles(128, seconds), batches(100, seconds)],
    rounds: bench.rounds(2),
    warmUpSeconds: 1,
    warmEach: true,
  });
}

export async function sizes(bench: Bench): Promise<void> {
  await runCells(bench, {
    group: "sizes",
    cells: penstockAndBaseline,
    loads: (cell) => [
      singles(1, 1),
      singles(32, 1),
      singles(512, 1),
      batches(10, 1),
      batches(100, 1, true),
      batches(1_000, 1),
      ...(cell.variant === "fastify" && cell.sync === "always"
        ? [huge(1)]
        : [huge(hugeAmount(cell, true), true)]),
    ],
    rounds: bench.rounds(2),
    warmUpSeconds: 1,
    warmEach: false,
  });
}

const penstockAlone = penstockAndBaseline.filter(({ variant }) => variant === "penstock");
const sharedByPartition = penstockAlone.map((cell) => ({
  ...cell,
  frameScope: "partition" as const,
}));

export async function projects(bench: Bench): Promise<void> {
  const rounds = bench.rounds(1);
  for (const { count, partitions } of [
    { count: 100, partitions: 1 },
    { count: 10_000, partitions: 1 },
    { count: 100, partitions: 4 },
    { count: 100, partitions: 16 },
  ]) {
    const load = singlesOf(count, 1);
    await runCells(bench, {
      group: "projects",
      cells: partitions === 1 ? [...penstockAndBaseline, ...sharedByPartition] : penstockAlone,
      loads: () => [overPartitions(load, partitions)],
      rounds,
      projects: count,
      partitions,
      warmUpSeconds: 1,
      warmEach: false,
    });
  }
  await manyProjects(bench);
}

function overPartitions(load: Load, partitions: number): Load {
  return partitions === 1 ? load : { ...load, name: `${load.name}, ${partitions} partitions` };
}

const manyConnections = 256;

export function manyProjectsScenario(count: number): string {
  return singlesOfName(count, manyConnections);
}

async function manyProjects(bench: Bench): Promise<void> {
  const penstock = { variant: "penstock" as const, sync: "always" as const };
  const cells = [penstock, { ...penstock, replicas: 3 }];
  const alone = cells.map((cell) => ({ ...cell, atomicBatches: false as const }));
  for (const { count, partitions } of [
    ...[1, 100, 1_000, 10_000].map((count) => ({ count, partitions: 1 })),
    ...[4, 16].map((partitions) => ({ count: 1_000, partitions })),
  ]) {
    const load = singlesOf(count, 2, manyConnections);
    await runCells(bench, {
      group: "projects",
      cells: count === 1 || partitions > 1 ? cells : [...cells, ...alone],
      loads: () => [overPartitions(load, partitions)],
      rounds: bench.rounds(1),
      projects: count,
      partitions,
      warmUpSeconds: 1,
      warmEach: false,
    });
  }
}

export async function workers(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 1 : 2;
  await runCells(bench, {
    group: "workers",
    cells: both.flatMap((sync) => [
      { variant: "penstock" as const, sync },
      { variant: "penstock" as const, sync, workers: 2 },
    ]),
    loads: () => [singles(128, seconds), batches(100, seconds)],
    rounds: bench.rounds(2),
    warmUpSeconds: 1,
    warmEach: true,
  });
}
