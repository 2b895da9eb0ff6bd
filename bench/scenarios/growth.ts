// The growth of the cost with one size while the others are fixed: batch size, connections,
// projects, event size. Only Penstock with the durable setting.

import { availableParallelism } from "node:os";
import { type Bench, runCells, valuesOf } from "../harness/bench.ts";
import { singleBody, smallBody } from "../harness/bodies.ts";
import type { Load } from "../harness/load.ts";
import { openSession } from "../harness/session.ts";
import { batches, huge, singles, singlesOf } from "./loads.ts";

const cells = [{ variant: "penstock" as const, sync: "always" as const }];
/** At this usage of one core, a single-threaded process counts as the limit. */
const busyCore = 0.85;
const busyMachine = 0.9;

export async function growth(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  const seconds = bench.quick ? 1 : 2;
  const run = (group: string, loads: readonly Load[]) =>
    runCells(bench, {
      group,
      cells,
      loads: () => loads,
      rounds,
      warmUpSeconds: 1,
      warmEach: false,
    });
  await run("growth: batch size", [
    ...[1, 10, 100, 1_000, 10_000].map((events) => batches(events, seconds)),
    huge(bench.quick ? 8 : 16),
  ]);
  await run(
    "growth: connections",
    [1, 4, 16, 64, 128, 256, 512, 1_024].map((connections) => singles(connections, seconds)),
  );
  await run(
    "growth: event size",
    [
      smallBody(),
      ...[0, 600, 2_000, 20_000, 200_000].map((padding) => singleBody(0, 0, padding)),
    ].map((body) => {
      return {
        ...singles(128, seconds),
        name: `single events of ${body.length.toLocaleString("en")} bytes`,
        bodies: [body],
      };
    }),
  );
  for (const projects of [1, 10, 100, 1_000, 10_000]) await growProjects(bench, projects, rounds);
}

async function growProjects(bench: Bench, projects: number, rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const session = await openSession({ ...cells[0]!, projects, closedLoop: bench.closedLoop });
    try {
      const load = singlesOf(projects, bench.quick ? 1 : 2);
      await session.warmUp(load, 1);
      const values = valuesOf(await session.measure(load));
      bench.note({ group: "growth: projects", scenario: load.name, ...cells[0]!, round, values });
    } finally {
      await session.close();
    }
  }
}

export function firstLimit(values: Readonly<Record<string, number>>): string {
  const cores: readonly (readonly [string, number])[] = [
    ["gateway CPU", values["serverCores"] ?? 0],
    ["nats-server CPU", values["natsCores"] ?? 0],
    ["client CPU", values["clientCores"] ?? 0],
    ["other processes", values["otherCores"] ?? 0],
  ];
  const [name, most] = cores.reduce((high, next) => (next[1] > high[1] ? next : high));
  const total = cores.reduce((sum, [, used]) => sum + used, 0);
  if (total >= busyMachine * availableParallelism()) return `all cores, most by ${name}`;
  // The gateway and the client have one thread each. The other processes have many threads, so one
  // core does not limit them.
  if (most >= busyCore && (name === "gateway CPU" || name === "client CPU")) return name;
  return "disk (waiting for fsync)";
}
