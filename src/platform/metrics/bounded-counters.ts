// Counters whose label values become known while the process runs, such as projects.

import type { Labels, Sample } from "./table.ts";

/** The value of labels in the series that counts for all without a series of their own. */
export const otherValue = "(other)";

interface BoundedCountersOptions<Value extends string> {
  /** The last label, and the index of each of its values in the counts. */
  readonly label: string;
  readonly values: Readonly<Record<Value, number>>;
  /** Maximum number of counters with their own labels. */
  readonly countersMax: number;
}

interface Counter<Value extends string> {
  readonly labels: Labels;
  readonly counts: Float64Array;
  /** The values whose series exist from the start. */
  readonly expected: Set<Value>;
}

export class BoundedCounters<Value extends string> {
  readonly #options: BoundedCountersOptions<Value>;
  readonly #values: readonly [Value, number][];
  readonly #counters = new Map<string, Counter<Value>>();

  constructor(options: BoundedCountersOptions<Value>) {
    this.#options = options;
    this.#values = Object.entries(options.values) as [Value, number][];
  }

  /**
   * Returns the counts of a counter, an element for each value. The same labels have the same
   * counts. Beyond the maximum, returns the counts of `other`.
   */
  of(labels: Labels, expected: readonly Value[], other: Labels): Float64Array {
    const key = JSON.stringify(labels);
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      const isFull = this.#counters.size >= this.#options.countersMax;
      if (isFull && labels !== other) return this.of(other, expected, other);
      const counts = new Float64Array(this.#values.length);
      counter = { labels, counts, expected: new Set() };
      this.#counters.set(key, counter);
    }
    for (const value of expected) counter.expected.add(value);
    return counter.counts;
  }

  /** Removes the counters with a label. */
  remove(label: string, value: string): void {
    for (const [key, { labels }] of this.#counters)
      if (labels[label] === value) this.#counters.delete(key);
  }

  samples(): Sample[] {
    const { label } = this.#options;
    return [...this.#counters.values()].flatMap(({ labels, counts, expected }) =>
      this.#values
        .filter(([value, index]) => expected.has(value) || counts[index]! > 0)
        .map(([value, index]) => ({
          labels: { ...labels, [label]: value },
          value: counts[index]!,
        })),
    );
  }
}
