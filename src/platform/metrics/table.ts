export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** How gauges of several workers are combined. Counters and histograms are always summed. */
  readonly across?: "sum" | "max" | "min";
  /** Whether the metrics page omits the metric if no worker reports it. */
  readonly isOptional?: boolean;
}

/** A value of a series, in the format that prom-client's registry writes. */
export interface Sample {
  /** The name of a part of a histogram. Absent for other metrics. */
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/** A metric with its series, as plain values that a process can send to another process. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly values: readonly Sample[];
}
