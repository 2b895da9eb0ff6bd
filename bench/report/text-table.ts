export function textTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  leftColumns: number,
): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column < leftColumns ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join(
    "\n",
  );
}

/** Smaller values are shown as 0, because they are differences of clocks. */
const nothing = 1e-6;

/** Three significant digits, thousands with commas; "-" if unknown. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) < nothing) return "0";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3).replace(/\.?0+$/, "") || "0";
}

export function mebibytes(bytes: number): string {
  return figure(bytes / 1_048_576);
}
