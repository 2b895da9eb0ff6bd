// A histogram that costs the hot path a short search and three additions. It knows nothing of
// prom-client: `samples` gives what a scrape needs, cumulative buckets as the Prometheus text
// format wants them.

import type { Sample } from "../../../platform/base/sample.ts";

export class Histogram {
  /** Upper bounds, inclusive, ascending; `+Inf` is implied. */
  readonly bounds: readonly number[];
  /**
   * How many values fell into each bucket, not cumulative. There is one bucket more than bounds:
   * the last is for values above all of them.
   */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.#counts[bucket]! += 1;
    this.#sum += value;
  }

  /** The series of metric `name`: one `_bucket` a bound and one for `+Inf`, `_sum`, `_count`. */
  samples(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    const samples: Sample[] = [];
    let count = 0;
    for (let bucket = 0; bucket <= this.bounds.length; bucket++) {
      count += this.#counts[bucket]!;
      const bound = this.bounds[bucket];
      const le = bound === undefined ? "+Inf" : String(bound);
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    samples.push({ metricName: `${name}_count`, labels, value: count });
    return samples;
  }
}
