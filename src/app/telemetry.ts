import type { Log } from "../platform/base/log.ts";
import { version } from "../platform/base/version.ts";
import type { Telemetry, TelemetryOptions } from "../platform/otel/telemetry.ts";
import type { Config } from "../platform/settings/config.ts";

interface TelemetryParts {
  readonly name: string;
  readonly hasRequests?: boolean;
  /** The metrics to export. They are undefined if another process exports them. */
  readonly snapshot?: NonNullable<TelemetryOptions["metrics"]>["snapshot"] | undefined;
  readonly log: Log;
}

/** Returns undefined if nothing is exported. The OpenTelemetry packages are then not loaded. */
export async function openTelemetry(
  config: Config,
  { name, hasRequests = false, snapshot, log }: TelemetryParts,
): Promise<Telemetry | undefined> {
  if (config.otelSdkDisabled) return undefined;
  // A worker leaves the warning to its supervisor, which exports the metrics.
  if (snapshot !== undefined)
    for (const reason of config.ignored ?? [])
      log.warn({ reason }, "OpenTelemetry setting ignored");
  const base = config.otelExporterOtlpEndpoint;
  const tracesUrl = config.otelExporterOtlpTracesEndpoint ?? (base && `${base}/v1/traces`);
  const metricsUrl = config.otelExporterOtlpMetricsEndpoint ?? (base && `${base}/v1/metrics`);
  const sampler = config.otelTracesSampler;
  const traces =
    hasRequests && tracesUrl !== undefined && sampler !== "always_off"
      ? { url: tracesUrl, sampler, ratio: config.otelTracesSamplerArg }
      : undefined;
  const metrics =
    snapshot !== undefined && metricsUrl !== undefined
      ? { url: metricsUrl, intervalMs: config.otelMetricExportInterval, snapshot }
      : undefined;
  if (traces === undefined && metrics === undefined) return undefined;
  const { startTelemetry } = await import("../platform/otel/telemetry.ts");
  log.info(
    { traces: traces?.url, sampler: traces?.sampler, metrics: metrics?.url },
    "OpenTelemetry export is on",
  );
  const { otelServiceName, otelResourceAttributes = {}, otelExporterOtlpHeaders } = config;
  const attributes = {
    ...otelResourceAttributes,
    ...(otelServiceName !== undefined && { "service.name": otelServiceName }),
  };
  return startTelemetry({
    service: { name, version },
    attributes,
    headers: otelExporterOtlpHeaders ?? {},
    ...(traces && { traces }),
    ...(metrics && { metrics }),
    log,
  });
}
