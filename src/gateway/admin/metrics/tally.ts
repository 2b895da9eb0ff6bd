// Counters that are one typed array: the hot path adds to a numbered row, a scrape reads them all.
// Rows are fixed when the tally is made, so label values stay bounded and every series is there, as
// 0, from the first scrape on.

import type { Sample } from "../../../platform/base/sample.ts";

type Labels = Readonly<Record<string, string>>;

export class Tally {
  readonly #counts: Float64Array;
  readonly #rows: readonly Labels[];

  /** `rows` gives the labels of each row; a metric without labels has the one row `{}`. */
  constructor(rows: readonly Labels[]) {
    this.#rows = rows;
    this.#counts = new Float64Array(rows.length);
  }

  add(row: number, count: number): void {
    this.#counts[row]! += count;
  }

  samples(): Sample[] {
    return this.#rows.map((labels, row) => ({ labels, value: this.#counts[row]! }));
  }
}

/** The rows of one label: `rowsOf("lane", ["live", "historical"])`. */
export function rowsOf(label: string, values: readonly string[]): Labels[] {
  return values.map((value) => ({ [label]: value }));
}

/** Each value's place in the list, for turning a label into a row. */
export function placesOf<T extends string>(values: readonly T[]): Readonly<Record<T, number>> {
  return Object.fromEntries(values.map((value, place) => [value, place])) as Record<T, number>;
}
