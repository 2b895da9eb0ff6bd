// The types of metrics: a row of a process's metric table, and the data of a scrape. No runtime
// code.

export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /**
   * How the gauges of several workers are combined into one value on the page. Counters and
   * histograms are always summed.
   */
  readonly across?: "sum" | "max" | "min";
  /** If no worker reports this metric, the page omits it too. */
  readonly isOptional?: boolean;
}

/** One line of a scrape, in the format that prom-client's registry writes. */
export interface Sample {
  /** Only set if it differs from the metric's name: for the parts of a histogram. */
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/** One metric with its series, as plain values that one process can send to another. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly values: readonly Sample[];
}
