export interface Row {
  readonly group: string;
  readonly scenario: string;
  readonly variant: string;
  readonly sync: "always" | "lazy" | "";
  readonly round: number;
  readonly values: Readonly<Record<string, number>>;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export interface Where {
  readonly group?: string;
  readonly scenario: string;
  readonly variant: string;
  readonly sync: Row["sync"];
}

export function valuesAt(rows: readonly Row[], where: Where, value: string): number[] {
  return rows
    .filter(
      (row) =>
        row.scenario === where.scenario &&
        row.variant === where.variant &&
        row.sync === where.sync &&
        (where.group === undefined || row.group === where.group),
    )
    .toSorted((left, right) => left.round - right.round)
    .map((row) => row.values[value] ?? Number.NaN);
}

/** NaN if the value was not measured. */
export function medianAt(rows: readonly Row[], where: Where, value: string): number {
  return median(valuesAt(rows, where, value));
}

export function places(rows: readonly Row[]): Required<Where>[] {
  const seen = new Map<string, Required<Where>>();
  for (const { group, scenario, variant, sync } of rows) {
    const key = JSON.stringify([group, scenario, sync, variant]);
    if (!seen.has(key)) seen.set(key, { group, scenario, variant, sync });
  }
  return [...seen.values()];
}
