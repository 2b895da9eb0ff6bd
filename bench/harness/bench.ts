// What a scenario is given: how much to do, and where its rows go. A row is one measurement of one
// round; what a table or a budget says is worked out from the rows later, so that nothing is shown
// that was not recorded.

import type { Row } from "../report/rows.ts";
import type { ClosedLoop, Load } from "./load.ts";
import type { Sync } from "./nats.ts";
import { type Measurement, openSession } from "./session.ts";
import { type FrameScope, type Variant, variantTitles } from "./variants.ts";

export interface Bench {
  readonly quick: boolean;
  readonly closedLoop: ClosedLoop;
  /** Of the attacks, only those with one of these in their name; undefined: all. */
  readonly beside: readonly string[] | undefined;
  /** How many rounds instead of so many; less when quick. */
  rounds(usual: number): number;
  note(row: Row): void;
  /** Something the reader of the result should know. */
  remark(text: string): void;
}

export interface Cell {
  readonly variant: Variant;
  readonly sync: Sync;
  /** Of Penstock, where it is not the default. */
  readonly frameScope?: FrameScope;
  readonly atomicBatches?: false;
  readonly replicas?: number;
  readonly workers?: number;
  /** How late the answers of the store come; see SessionOptions. */
  readonly lateMs?: number;
}

interface CellsOptions {
  readonly group: string;
  readonly cells: readonly Cell[];
  readonly loads: (cell: Cell) => readonly Load[];
  readonly rounds: number;
  readonly projects?: number;
  readonly partitions?: number;
  /** Of all cells. */
  readonly replicas?: number;
  /** Of the first load of each session, and again of each load if `warmEach`. */
  readonly warmUpSeconds: number;
  readonly warmEach: boolean;
}

/**
 * Every cell once a round, each in fresh processes, in an order that is turned round every other
 * round.
 */
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

/**
 * What a row says it measured: a variant, or its title with the setting that is not the default.
 */
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

/** A large body is one request, which may take seconds. */
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
