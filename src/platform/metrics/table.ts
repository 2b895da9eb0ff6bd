export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** How the gauges of several workers are combined. Counters and histograms are always added. */
  readonly across?: "sum" | "max" | "min";
  readonly isOptional?: boolean;
}

export interface Sample {
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly values: readonly Sample[];
}
