// Reduces the counters to running totals for the live page, which computes the rates.

import type { MetricSnapshot } from "../platform/metrics/table.ts";

export interface Counts {
  readonly answers: Readonly<Record<string, number>>;
  readonly problems: Readonly<Record<string, number>>;
  readonly events: readonly EventCount[];
  readonly warnings: Readonly<Record<string, number>>;
  /**
   * Pairs of a bound in seconds and the number of requests that took at most this time. The last
   * bound is null, and counts all requests.
   */
  readonly durations: readonly (readonly [number | null, number])[];
}

interface EventCount {
  readonly outcome: string;
  readonly reason: string;
  readonly count: number;
}

export function countsOf(metrics: readonly MetricSnapshot[]): Counts {
  const values = (name: string) => metrics.find((metric) => metric.name === name)?.values ?? [];
  const sums = (name: string, label: string): Record<string, number> => {
    const found: Record<string, number> = {};
    for (const { labels, value } of values(name)) {
      const key = labels[label] ?? "";
      if (value > 0) found[key] = (found[key] ?? 0) + value;
    }
    return found;
  };
  const events = new Map<string, EventCount>();
  for (const { labels, value } of values("penstock_events_total")) {
    const { outcome = "", reason = "" } = labels;
    const count = (events.get(`${outcome} ${reason}`)?.count ?? 0) + value;
    events.set(`${outcome} ${reason}`, { outcome, reason, count });
  }
  const durations = new Map<string, number>();
  for (const { metricName, labels, value } of values("penstock_request_duration_seconds")) {
    const le = labels["le"];
    if (!metricName?.endsWith("_bucket") || le === undefined || labels["route"] === "other")
      continue;
    durations.set(le, (durations.get(le) ?? 0) + value);
  }
  return {
    answers: sums("penstock_requests_total", "status"),
    problems: sums("penstock_problems_total", "code"),
    events: [...events.values()].filter(({ count }) => count > 0),
    warnings: sums("penstock_warnings_total", "code"),
    durations: [...durations].map(([le, count]) => [le === "+Inf" ? null : Number(le), count]),
  };
}
