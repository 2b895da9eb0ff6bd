// One line of a scrape, in the shape prom-client's registry writes out. No runtime code.

export interface Sample {
  /** Given only where it differs from the metric's name: for the parts of a histogram. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One metric with its series, as plain values that one process can send to another. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly values: readonly Sample[];
}
