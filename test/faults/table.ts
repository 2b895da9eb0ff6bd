import type { EffectsResult } from "./effects/scenario.ts";
import type { ImportResult } from "./import/import-killed.ts";
import type { RunResult } from "./run-scenario.ts";

const loadHeadings = [
  "scenario",
  "load",
  "nats-server",
  "acknowledged",
  "lost",
  "duplicated",
  "refused",
  "unknown",
  "out of order",
  "back after",
  "verdict",
];
const effectsHeadings = ["scenario", "database", "nats-server", "took", "verdict"];
const importHeadings = ["scenario", "file", "nats-server", "took", "verdict"];
const textColumns = 3;

export function tableOf(results: readonly RunResult[]): string {
  const rows = results.map((result) => [
    result.scenario,
    result.load,
    result.natsVersion,
    ...[
      result.acknowledged,
      result.lost,
      result.duplicated,
      result.refused,
      result.unknown,
      result.outOfOrder,
    ].map(whole),
    result.recoveryMs === undefined ? "-" : `${whole(result.recoveryMs)} ms`,
    result.faults.length === 0 ? "kept" : "BROKEN",
  ]);
  return markdown(loadHeadings, rows);
}

export function effectsTableOf(results: readonly EffectsResult[]): string {
  const rows = results.map(({ scenario, database, natsVersion, seconds, faults }) => [
    scenario,
    database,
    natsVersion,
    `${whole(seconds)} s`,
    faults.length === 0 ? "kept" : "BROKEN",
  ]);
  return markdown(effectsHeadings, rows);
}

export function importTableOf(results: readonly ImportResult[]): string {
  const rows = results.map(({ scenario, natsVersion, seconds, faults }) => [
    scenario,
    "NDJSON",
    natsVersion,
    `${whole(seconds)} s`,
    faults.length === 0 ? "kept" : "BROKEN",
  ]);
  return markdown(importHeadings, rows);
}

function markdown(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => pad(cell, widths[column]!, column)).join(" | ")} |\n`;
  const rule = `|${widths.map((width, column) => (column < textColumns ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|\n`;
  return line(headings) + rule + rows.map(line).join("");
}

function pad(cell: string, width: number, column: number): string {
  return column < textColumns ? cell.padEnd(width) : cell.padStart(width);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}
