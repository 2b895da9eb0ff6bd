// The input of a scenario, and the destination of its rows. A row is one measurement of one round.
// Tables and budgets are computed from the rows, so that all shown values are recorded.

import type { Row } from "../report/rows.ts";
import type { ClosedLoop, Load } from "./load.ts";
import type { Sync } from "./nats.ts";
import { type Measurement, openSession } from "./session.ts";
import { type FrameScope, type Variant, variantTitles } from "./variants.ts";

export interface Bench {
  readonly quick: boolean;
  readonly closedLoop: ClosedLoop;
  /** Parts of the names of the attacks to run; undefined for all attacks. */
  readonly beside: readonly string[] | undefined;
  rounds(usual: number): number;
  note(row: Row): void;
  remark(text: string): void;
}

export interface Cell {
  readonly variant: Variant;
  readonly sync: Sync;
  readonly frameScope?: FrameScope;
  readonly atomicBatches?: false;
  readonly replicas?: number;
  readonly workers?: number;
  readonly lateMs?: number;
}

interface CellsOptions {
  readonly group: string;
  readonly cells: readonly Cell[];
  readonly loads: (cell: Cell) => readonly Load[];
  readonly rounds: number;
  readonly projects?: number;
  readonly partitions?: number;
  readonly replicas?: number;
  readonly warmUpSeconds: number;
  readonly warmEach: boolean;
}

/** Runs every cell once per round, in new processes. Every other round reverses the order. */
export async function runCells(bench: Bench, options: CellsOptions): Promise<void> {
  const { group, cells, loads, rounds, projects = 1, partitions = 1, replicas = 1 } = options;
  for (let round = 1; round <= rounds; round++) {
    for (const cell of inOrder(cells, round)) {
      const session = await openSession({
        replicas,
        ...cell,
        projects,
        partitions,
        closedLoop: bench.closedLoop,
      });
      try {
        for (const [index, load] of loads(cell).entries()) {
          if (index === 0 || options.warmEach)
            await session.warmUp(warmUpOf(load), options.warmUpSeconds);
          const measurement = await session.measure(load);
          const { variant } = cell;
          const sync = variant === "ceiling" ? "" : cell.sync;
          const values = {
            ...valuesOf(measurement),
            ...(cell.workers === undefined ? {} : { workers: cell.workers }),
            ...(session.roundTripMs === undefined ? {} : { roundTripMs: session.roundTripMs }),
          };
          bench.note({ group, scenario: load.name, variant: nameOf(cell), sync, round, values });
        }
      } finally {
        await session.close();
      }
    }
  }
}

function nameOf(cell: Cell): string {
  const { variant, frameScope, atomicBatches, replicas, workers, lateMs } = cell;
  const settings = [
    ...(frameScope === undefined ? [] : [`frame scope ${frameScope}`]),
    ...(atomicBatches === undefined ? [] : ["without atomic batches"]),
    ...(replicas === undefined ? [] : [`${replicas} replicas`]),
    ...(workers === undefined ? [] : [`${workers} workers`]),
    ...(lateMs === undefined ? [] : [`answers ${lateMs} ms late`]),
  ];
  return settings.length === 0 ? variant : [variantTitles[variant], ...settings].join(", ");
}

function warmUpOf(load: Load): Load {
  return load.unique === true ? { ...load, amount: 1 } : load;
}

export function inOrder<T>(items: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? items.toReversed() : items;
}

export function valuesOf(measurement: Measurement): Record<string, number> {
  const { run, ...numbers } = measurement;
  return { ...numbers, requests: run.requests };
}
