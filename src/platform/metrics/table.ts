// The types of metrics: a row of a process's metric table, and the data of a scrape. No runtime
// code.

export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /**
   * The combination of the gauges of several workers into one value on the page. Counters and
   * histograms are always summed.
   */
  readonly across?: "sum" | "max" | "min";
  /** Whether the page omits the metric if no worker reports it. */
  readonly isOptional?: boolean;
}

/** One line of a scrape, in the format that prom-client's registry writes. */
export interface Sample {
  /** The name of a part of a histogram; absent if it equals the name of the metric. */
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
