// Building blocks of the dashboard's queries. By default, queries select the gateways that are
// chosen at the top of the dashboard.

import type { Query } from "./panels.ts";

const chosen = 'job=~"$job",instance=~"$instance"';

/** A metric of the selected gateways, with optional further conditions on its labels. */
export function of(metric: string, labels = ""): string {
  return `${metric}{${labels === "" ? chosen : `${chosen},${labels}`}}`;
}

export function rate(metric: string, labels = ""): string {
  return `rate(${of(metric, labels)}[$__rate_interval])`;
}

export function sumRate(metric: string, by = "", labels = ""): string {
  return by === "" ? `sum(${rate(metric, labels)})` : `sum by (${by}) (${rate(metric, labels)})`;
}

/** Sum over all processes with the metric, such as effects and sinks. */
export function sumRateOfAll(metric: string, by = ""): string {
  const summed = by === "" ? "sum" : `sum by (${by})`;
  return `${summed} (rate(${metric}[$__rate_interval]))`;
}

/** p50, p90 and p99 of a histogram, for each value of a label if given. */
export function quantiles(metric: string, by = "", labels = ""): Query[] {
  return [0.5, 0.9, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, ${sumRate(`${metric}_bucket`, by === "" ? "le" : `le, ${by}`, labels)})`,
    legend: `p${quantile * 100}${by === "" ? "" : ` {{${by}}}`}`,
  }));
}

export function mean(metric: string): string {
  return `${sumRate(`${metric}_sum`)} / ${sumRate(`${metric}_count`)}`;
}
