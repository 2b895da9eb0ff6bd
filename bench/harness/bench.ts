// The input of a scenario: the amount of work, and the destination of its rows. A row is one
// measurement of one round. Tables and budgets are computed from the rows later, so that all shown
// values are recorded.

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
  /** Returns the number of rounds: `usual`, or fewer in a quick run. */
  rounds(usual: number): number;
  note(row: Row): void;
  /** Adds a remark for the reader of the result. */
  remark(text: string): void;
}

export interface Cell {
  readonly variant: Variant;
  readonly sync: Sync;
  /** Penstock's configuration; undefined for the default. */
  readonly frameScope?: FrameScope;
  readonly atomicBatches?: false;
  readonly replicas?: number;
  readonly workers?: number;
  /** The delay of the store's responses in milliseconds. */
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
  /** The warm-up of the first load of each session, or of each load if `warmEach`. */
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

/** Returns the name of the measured variant: its own name, or a title with an unusual setting. */
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

/** Returns a load for the warm-up. For large bodies it is one request, which may take seconds. */
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
