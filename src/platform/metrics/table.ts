import { version } from "../base/version.ts";

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

/** The metric that every process exports. */
export const buildInfoTable = {
  penstock_build_info: {
    type: "gauge",
    across: "max",
    help: "Always 1. The label version is the version of Penstock.",
  },
} as const satisfies Record<string, MetricRow>;

export const buildInfo: readonly Sample[] = [{ labels: { version }, value: 1 }];
