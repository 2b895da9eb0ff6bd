// The record of a run: one JSON file with the machine, the versions and every round, small enough
// to commit.

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Budget, isMet } from "./budgets.ts";
import type { Machine, Versions } from "./machine.ts";
import type { Row } from "./rows.ts";

interface BenchResult {
  readonly at: string;
  readonly arguments: readonly string[];
  readonly machine: Machine;
  readonly versions: Versions;
  readonly remarks: readonly string[];
  readonly budgets: readonly Budget[];
  readonly rows: readonly Row[];
}

export const resultsFolder = resolve(import.meta.dirname, "../results");
const digits = 4;

export function writeResult(result: BenchResult): string {
  const { budgets, rows, ...head } = result;
  const lines = rows.map(({ group, scenario, variant, sync, round, values }) =>
    JSON.stringify([group, scenario, variant, sync, round, shortened(values)]),
  );
  const named = budgets.map((budget) => JSON.stringify({ ...budget, met: isMet(budget) ?? null }));
  const text = `${JSON.stringify(head, null, 2).slice(0, -2)},
  "budgets": [
    ${named.join(",\n    ")}
  ],
  "columns": ["group", "scenario", "variant", "sync", "round", "values"],
  "rows": [
    ${lines.join(",\n    ")}
  ]
}
`;
  mkdirSync(resultsFolder, { recursive: true });
  const minute = result.at.slice(0, 16).replace(":", "");
  const file = join(resultsFolder, `${minute}-${result.versions.commit}.json`);
  writeFileSync(file, text);
  return file;
}

/** Counts are not rounded, because their last digit may matter. */
function shortened(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      Number.isInteger(value) ? value : Number(value.toPrecision(digits)),
    ]),
  );
}
