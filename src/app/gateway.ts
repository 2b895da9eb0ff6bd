import { setTimeout as delay } from "node:timers/promises";
import type { ClientWarnings } from "../gateway/admin/metrics/client-warnings.ts";
import type { Metrics } from "../gateway/admin/metrics/metrics.ts";
import { AdminServer } from "../gateway/admin/server.ts";
import { loadConnectionAddon } from "../gateway/http/client/connection-id.ts";
import type { Config } from "../platform/settings/config.ts";
import { type DataPath, openDataPath } from "./data-path.ts";
import { type GatewayBase, type GatewayDependencies, gatewayBase } from "./gateway-base.ts";
import { livePageOf } from "./live.ts";
import { portAccess } from "./require-token.ts";
import { openStoreSide, type StoreSide } from "./store-side.ts";
import { openTelemetry } from "./telemetry.ts";

export interface Gateway {
  readonly port: number;
  readonly adminPort: number;
  readonly streamCreated: string | null;
  readonly metrics: Metrics;
  readonly clientWarnings: ClientWarnings;
  readiness(): Promise<readonly string[]>;
  warnings(): readonly string[];
  /**
   * Waits for `drainDelayMs`, stops accepting requests, and closes everything. The default of
   * `drainDelayMs` is the setting.
   */
  close(drainDelayMs?: number): Promise<void>;
}

/**
 * Waits for NATS, creates or checks the streams, reads the registry, and then opens the public
 * port. Rejects if a port is in use, if a stream would lose acknowledged events, or if the signal
 * aborts.
 */
export async function startGateway(
  config: Config,
  dependencies: GatewayDependencies,
): Promise<Gateway> {
  const connection = loadConnectionAddon();
  const base = gatewayBase(config, dependencies);
  const { log, worker, metrics, clientWarnings, status, instance, closers } = base;
  try {
    const operator = worker === undefined ? await openOperatorSide(base) : undefined;
    const adminPort = operator?.port ?? 0;
    const telemetry = await openTelemetry(config, {
      name: "penstock",
      hasRequests: true,
      log,
      snapshot: worker === undefined ? () => metrics.snapshot() : undefined,
    });
    closers.add(() => telemetry?.close());
    if (telemetry?.tracing) metrics.watch({ penstock_otel_spans_total: telemetry.spanCounts });
    const store = await openStoreSide(base);
    const streamCreated = store.streams.of("live", 0).reading?.created ?? null;
    instance.stream_created = streamCreated;
    const data = await openDataPath(base, store, { connection, tracing: telemetry?.tracing });
    watchSides(metrics, store, data);
    const port = await data.http.listen(config.host, config.port, worker ?? "alone");
    status.publicPort = port;
    const { registry, watch } = store;
    status.readiness = async () => [
      ...(registry.fault === undefined ? [] : [registry.fault]),
      ...(await watch.check()),
    ];
    const adminAt = operator && { adminHost: config.adminHost, adminPort };
    log.info({ host: config.host, port, ...adminAt }, "gateway listening");

    let closed: Promise<void> | undefined;
    return {
      port,
      adminPort,
      streamCreated,
      metrics,
      clientWarnings,
      readiness: () => status.readiness(),
      warnings: () => status.warnings(),
      close: (drainDelayMs = config.drainDelayMs) => {
        closed ??= drain(base, data, { admin: operator?.admin, drainDelayMs });
        return closed;
      },
    };
  } catch (error) {
    await closers.close();
    throw error;
  }
}

/** Opens the admin port. It is opened first, so that it responds while the other parts start. */
async function openOperatorSide(base: GatewayBase) {
  const { config, log, clock, metrics, clientWarnings, status, instance, closers } = base;
  const { tryKey, effectsPort, adminPages } = base;
  const live = livePageOf(config, {
    counts: async () => metrics.counts(),
    clientWarnings: async () => clientWarnings.latest(),
    readiness: () => status.readiness(),
    publicPort: () => status.publicPort,
    tryKey,
    effectsPort,
  });
  const admin = new AdminServer({
    access: portAccess(config, "admin"),
    metrics,
    log,
    monotonicMs: clock.monotonicMs,
    readiness: () => status.readiness(),
    warnings: async () => status.warnings(),
    publicPort: () => status.publicPort,
    instance,
    live: (request, response) =>
      adminPages?.(request, response) === true || live.answer(request, response),
  });
  const port = await admin.listen(config.adminHost, config.adminPort);
  closers.add(() => admin.close());
  closers.add(() => live.close());
  return { admin, port };
}

function watchSides(
  metrics: Metrics,
  { registry, watch }: StoreSide,
  { http, publisher, admission, shares }: DataPath,
): void {
  metrics.watch({
    penstock_requests_inflight: () => http.inflight(),
    penstock_connections: () => http.connections.open,
    penstock_connections_max: () => http.connections.max,
    penstock_connections_refused_total: () =>
      Object.entries(http.connections.refused).map(([limit, value]) => ({
        labels: { limit },
        value,
      })),
    penstock_connections_closed_early_total: () =>
      Object.entries(http.connections.closedEarly).map(([reason, value]) => ({
        labels: { reason },
        value,
      })),
    penstock_unread_answer_bytes: () => http.unread.bytes,
    penstock_unread_answers_reset_total: () => http.unread.reset,
    penstock_frames_unacked: () => publisher.framesUnacked,
    penstock_inflight_bytes: () => admission.bytes,
    penstock_inflight_bytes_max: () => admission.bytesMax,
    penstock_projects_over_share: () => shares.projectsOver,
    penstock_projects: () => registry.projectsKnown,
    penstock_registry_in_doubt: () => registry.fault !== undefined,
    penstock_projects_without_current_rules: () => registry.rulesUnusable,
    penstock_rule_events_total: () => registry.ruleCounts.ruleSamples,
    penstock_schema_results_total: () => registry.ruleCounts.schemaSamples,
    penstock_stream_bytes: () =>
      watch.sizes().map(({ labels, bytes }) => ({ labels, value: bytes })),
    penstock_stream_bytes_max: () =>
      watch.sizes().map(({ labels, bytesMax }) => ({ labels, value: bytesMax })),
    penstock_streams_refused: () => watch.unfit(),
  });
}

async function drain(
  { config, log, clock, status, closers }: GatewayBase,
  { http, publisher }: DataPath,
  { admin, drainDelayMs }: { admin: AdminServer | undefined; drainDelayMs: number },
): Promise<void> {
  status.setBusy("shutting down");
  admin?.readinessChanged();
  await delay(drainDelayMs);
  const deadlineMs = clock.monotonicMs() + config.drainTimeoutMs;
  const left = await http.drain(config.drainTimeoutMs);
  await publisher.drain(deadlineMs);
  if (left > 0) log.warn({ requests: left }, "drain timed out: some requests get no response");
  log.info({}, "gateway closing connections");
  await closers.close();
  log.info({}, "gateway stopped");
}
