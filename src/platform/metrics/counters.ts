// Counters and histograms for the hot path: an update is a few additions to a typed array.

import type { Labels, Sample } from "./table.ts";

/**
 * A counter for each pair of values of at most two labels, fixed at creation. Every series exists
 * with the value 0 from the first scrape on: otherwise a rate would not show the first failure.
 */
export class LabeledCounters<First extends string = string, Second extends string = string> {
  readonly #first: Readonly<Record<string, number>>;
  readonly #second: Readonly<Record<string, number>>;
  readonly #width: number;
  readonly #labels: readonly Labels[];
  readonly #counts: Float64Array;
  readonly #held: Float64Array;

  /** An unused label has the value "". */
  constructor(
    first: readonly First[],
    second: readonly Second[],
    labels: (first: First, second: Second) => Labels,
  ) {
    this.#first = indexOf(first);
    this.#second = indexOf(second);
    this.#width = second.length;
    this.#labels = first.flatMap((one) => second.map((other) => labels(one, other)));
    this.#counts = new Float64Array(this.#labels.length);
    this.#held = new Float64Array(this.#labels.length);
  }

  add(count: number, first: First | "" = "", second: Second | "" = ""): void {
    this.#counts[this.#first[first]! * this.#width + this.#second[second]!]! += count;
  }

  /** Adds a pending count, which scrapes show only after its confirmation. */
  hold(count: number, first: First | "" = "", second: Second | "" = ""): void {
    this.#held[this.#first[first]! * this.#width + this.#second[second]!]! += count;
  }

  settle(): void {
    for (const [index, count] of this.#held.entries()) this.#counts[index]! += count;
    this.drop();
  }

  drop(): void {
    this.#held.fill(0);
  }

  samples(): Sample[] {
    return this.#labels.map((labels, index) => ({ labels, value: this.#counts[index]! }));
  }
}

function indexOf(values: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(values.map((value, index) => [value, index]));
}

export class Histogram {
  /** Inclusive and ascending. `+Inf` is implied. */
  readonly #bounds: readonly number[];
  readonly #labels: Labels;
  /** Not cumulative. The last bucket has the values above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[], labels: Labels = {}) {
    this.#bounds = bounds;
    this.#labels = labels;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.#counts[bucket]! += 1;
    this.#sum += value;
  }

  /** Returns a cumulative `_bucket` for each bound, `_sum` and `_count`. */
  samples(name: string): Sample[] {
    const labels = this.#labels;
    const samples: Sample[] = [];
    let count = 0;
    for (const [bucket, own] of this.#counts.entries()) {
      count += own;
      const le = String(this.#bounds[bucket] ?? "+Inf");
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    samples.push({ metricName: `${name}_count`, labels, value: count });
    return samples;
  }
}
