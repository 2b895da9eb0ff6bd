// Exports traces and metrics over OTLP. This file is loaded only if an endpoint is set, because the
// packages of OpenTelemetry need time and memory.

import { randomUUID } from "node:crypto";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { emptyResource, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Log } from "../base/log.ts";
import { atMost, SparseWarning } from "../base/retry.ts";
import type { Tracing } from "../base/tracing.ts";
import type { MetricSnapshot, Sample } from "../metrics/table.ts";
import { metricData } from "./metric-data.ts";
import { Sampling } from "./sampling.ts";
import { RequestTracing } from "./spans.ts";

export interface TelemetryOptions {
  readonly service: { readonly name: string; readonly version: string };
  readonly attributes: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly traces?: { readonly url: string; readonly sampler: string; readonly ratio: number };
  readonly metrics?: {
    readonly url: string;
    readonly intervalMs: number;
    readonly snapshot: () => Promise<readonly MetricSnapshot[]>;
  };
  readonly log: Log;
}

export interface Telemetry {
  readonly tracing: Tracing | undefined;
  spanCounts(): Sample[];
  close(): Promise<void>;
}

const spansWaitingMax = 2_048;
const exportedAtOnceMax = 128;
const flushMsMax = 1_000;
const logEveryMs = 60_000;

export function startTelemetry(options: TelemetryOptions): Telemetry {
  const { service, attributes, traces, metrics } = options;
  const resource = resourceFromAttributes({
    "service.name": service.name,
    "service.version": service.version,
    "service.instance.id": randomUUID(),
    ...attributes,
  });
  const spans = traces && openTraces(traces, resource, options);
  const meters = metrics && openMetrics(metrics, resource, options);
  return {
    tracing: spans?.tracing,
    spanCounts: () => spans?.counts() ?? [],
    close: async () => {
      await atMost(flushMsMax, Promise.allSettled([spans?.shutdown(), meters?.shutdown()]));
    },
  };
}

function openTraces(
  { url, sampler, ratio }: NonNullable<TelemetryOptions["traces"]>,
  resource: Resource,
  { service, headers, log }: TelemetryOptions,
) {
  const failed = failureLog(log, "spans are dropped", url);
  const queue = new SpanQueue(new OTLPTraceExporter({ url, headers }), failed);
  const provider = new TracerProvider({
    resource,
    sampler: new AlwaysOnSampler(),
    spanProcessors: [queue],
  });
  const sampling = new Sampling({ sampler, ratio });
  return {
    tracing: new RequestTracing(provider.getTracer("penstock", service.version), sampling),
    counts: () =>
      Object.entries({ ...queue.counts, limited: sampling.limited }).map(([outcome, value]) => ({
        labels: { outcome },
        value,
      })),
    shutdown: () => provider.shutdown(),
  };
}

class SpanQueue implements SpanProcessor {
  readonly counts = { exported: 0, failed: 0, dropped: 0 };
  readonly #batches: BatchSpanProcessor;
  #waiting = 0;

  constructor(exporter: SpanExporter, failed: (reason: unknown) => void) {
    const counted: SpanExporter = {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#waiting -= spans.length;
          const isExported = result.code === ExportResultCode.SUCCESS;
          this.counts[isExported ? "exported" : "failed"] += spans.length;
          if (!isExported) failed(result.error);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
    this.#batches = new BatchSpanProcessor({
      exporter: counted,
      maxQueueSize: spansWaitingMax,
      maxExportBatchSize: exportedAtOnceMax,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= spansWaitingMax) {
      this.counts.dropped++;
      return;
    }
    this.#waiting++;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }
}

function openMetrics(
  { url, intervalMs, snapshot }: NonNullable<TelemetryOptions["metrics"]>,
  resource: Resource,
  { service, headers, log }: TelemetryOptions,
): MeterProvider {
  const producer: MetricProducer = {
    collect: async () => {
      const time = { startMs: performance.timeOrigin, endMs: Date.now() };
      const scopeMetrics = [
        {
          scope: { name: "penstock", version: service.version },
          metrics: metricData(await snapshot(), time),
        },
      ];
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
    },
  };
  const exporter: PushMetricExporter = new OTLPMetricExporter({ url, headers });
  const failed = failureLog(log, "the next export has all counts", url);
  const send = exporter.export.bind(exporter);
  exporter.export = (metrics, done) =>
    send(metrics, (result) => {
      if (result.code !== ExportResultCode.SUCCESS) failed(result.error);
      done(result);
    });
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: intervalMs,
    metricProducers: [producer],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function failureLog(log: Log, consequence: string, url: string): (error: unknown) => void {
  const warning = new SparseWarning(log, logEveryMs);
  return (error) => {
    const { message = "", code } = (error ?? {}) as { message?: string; code?: unknown };
    const reason = [message, code].filter(Boolean).join(" ") || "no answer";
    warning.warn({ url, reason }, `OpenTelemetry export failed: ${consequence}`);
  };
}
