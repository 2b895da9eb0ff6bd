export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Combines the gauges of several workers. Counters and histograms are always summed. */
  readonly across?: "sum" | "max" | "min";
  /** Whether the page omits the metric if no worker reports it. */
  readonly isOptional?: boolean;
}

/** A value of a series, in the format that prom-client's registry writes. */
export interface Sample {
  /** The name of a part of a histogram; absent if it equals the name of the metric. */
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/** A metric with its series, as plain values that one process can send to another. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly values: readonly Sample[];
}
