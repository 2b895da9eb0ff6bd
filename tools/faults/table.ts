// The table of the results, as Markdown: one row a run. Computes nothing but widths.

import type { RunResult } from "./run-scenario.ts";

const headings = [
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
