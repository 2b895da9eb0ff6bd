// Wires the parts of one gateway process and owns their order: what starts before what, and what
// stops after what. The only file that knows the concrete parts; holds no logic of its own.

import { randomBytes, randomFillSync } from "node:crypto";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { type ClientWarnings, createClientWarnings } from "../admin/metrics/client-warnings.ts";
import { createMetrics, type Metrics } from "../admin/metrics/metrics.ts";
import { createAdminServer } from "../admin/server.ts";
import { lowerBackgroundThreads } from "../base/background-threads.ts";
import type { Log, ProcessLog } from "../base/log.ts";
import { connectionsRoom, openFilesMax } from "../base/open-files.ts";
import { createRecordWriter } from "../events/record.ts";
import { createUuidSource } from "../events/uuid.ts";
import { watchCertificate } from "../http/certificate.ts";
import { proxyProtocolNeedsAddon } from "../http/client/address-source.ts";
import { type ConnectionId, loadConnectionId } from "../http/client/connection-id.ts";
import type { CertificateFiles } from "../http/listener.ts";
import { readStaticFiles, type StaticFiles } from "../http/pages/static-files.ts";
import { createHttpServer } from "../http/server.ts";
import { createAdmission } from "../intake/admission.ts";
import { createEarlyLook } from "../intake/early-look.ts";
import { createIntake, type IntakeOptions } from "../intake/intake.ts";
import { connectNats } from "../nats/link.ts";
import { createStreamStates } from "../nats/readiness.ts";
import { tellVersionFaults } from "../nats/versions.ts";
import { createRegistry } from "../projects/registry/registry.ts";
import { storedEvents } from "../projects/usage/events-before.ts";
import { createUsageWriter } from "../projects/usage/usage-writer.ts";
import { createPublisher } from "../publish/publisher.ts";
import { createNativeScanner, loadAddon } from "../scan/native.ts";
import { createReferenceScanner } from "../scan/reference.ts";
import type { Config } from "../settings/config.ts";
import { createStreams } from "../streams/ensure.ts";
import { createProjectShares } from "../streams/project-shares.ts";
import { createStreamWatch } from "../streams/watch.ts";
import { livePageOf } from "./live.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  /** Gives up a start that still waits for NATS. */
  readonly signal?: AbortSignal;
  /**
   * Makes it one of several on the public port, which it is the first to take or joins. Such a one
   * opens no admin port.
   */
  readonly worker?: "first" | "joining";
  /**
   * Milliseconds since the epoch: what events are received at. Default: the system's clock, which
   * may be set while this runs.
   */
  readonly wallMs?: () => number;
  /** A project's key that the live page may offer to try the gateway with. */
  readonly tryKey?: string | undefined;
}

export interface Gateway {
  /** Where the public endpoints are. */
  readonly port: number;
  /** 0 for a worker, which has none. */
  readonly adminPort: number;
  readonly metrics: Metrics;
  /** What went wrong for clients lately. */
  readonly clientWarnings: ClientWarnings;
  /** What keeps events from being stored now; empty when nothing does. */
  readiness(): Promise<readonly string[]>;
  /** What an operator should know though events can be stored. */
  warnings(): readonly string[];
  /**
   * Drains: takes no more, after the delay, which is as set unless given, answers what it has
   * taken, then closes everything. Never rejects for what clients do.
   */
  close(drainDelayMs?: number): Promise<void>;
}

/**
 * What is given to the process id of message ids and of the usage record, in random bytes: no two
 * processes share one.
 */
const processIdBytes = 12;

/**
 * Starts a gateway: waits for NATS, makes sure of the streams, reads the registry, then listens.
 * Rejects when a port is taken, when a stream is not fit to keep the promise of a 200, or when the
 * signal aborts.
 */
export async function startGateway(
  config: Config,
  dependencies: GatewayDependencies,
): Promise<Gateway> {
  const { log, signal, worker, tryKey, wallMs = () => Date.now() } = dependencies;
  const closers: (() => Promise<void> | void)[] = [];
  const nowMs = () => performance.now();
  const clock = { wallMs, monotonicMs: nowMs };
  let whyNotReady: () => Promise<readonly string[]> = async () => ["waiting for NATS"];
  let publicPort: number | undefined;
  try {
    const connectionId = connectionIdentity(config, log);
    const metrics = createMetrics();
    closers.push(() => metrics.close());
    // From the first scrape on: an alert on a NATS that was never there needs it.
    let isConnected = (): boolean => false;
    metrics.watch({ natsConnected: () => isConnected() });
    const readiness = () => whyNotReady();
    let warningsNow: () => readonly string[] = () => [];
    const warnings = () => warningsNow();
    const clientWarnings = createClientWarnings(clock);
    const live = worker
      ? undefined
      : livePageOf(config, {
          counts: async () => metrics.counts(),
          clientWarnings: async () => clientWarnings.latest(),
          readiness,
          publicPort: () => publicPort,
          tryKey,
        });
    const admin =
      live &&
      createAdminServer({
        ...{ metrics, readiness, log, monotonicMs: nowMs },
        warnings: async () => warnings(),
        live: live.answer,
      });
    const adminPort = (await admin?.listen(config.adminHost, config.adminPort)) ?? 0;
    closers.push(() => admin?.close());
    closers.push(() => live?.close());

    const link = await connectNats({
      access: { ...config, natsUrl: config.natsUrl ?? "" },
      log,
      signal,
    });
    closers.push(() => link.close());
    isConnected = () => link.connected;
    if (worker !== "joining") tellVersionFaults(link, config.replicas, log);
    whyNotReady = async () => ["making sure of the streams"];
    await createStreams(link, config, log).ensure(signal);
    const streams = createStreamStates(config.subjectPrefix, config.partitions);
    const watch = createStreamWatch({ link, settings: config, streams, metrics, log, nowMs });
    closers.push(() => watch.close());
    const { subjectPrefix: prefix, replicas, hubDomain } = config;
    whyNotReady = async () => ["reading the project registry"];
    const { connection } = link;
    const registry = await createRegistry({
      connection,
      ...{ prefix, replicas, hubDomain, log, signal },
      // A leaf's streams begin at a sequence made of the time, and its registry at what the hub
      // has.
      ...(hubDomain === undefined ? { storedEvents: () => storedEvents(connection, prefix) } : {}),
    });
    warningsNow = () => registry.warnings;
    closers.push(() => registry.close());

    const processId = randomBytes(processIdBytes).toString("base64url");
    const usage = createUsageWriter({
      connection: link.connection,
      prefix,
      replicas,
      processId,
      meters: registry.meters,
      log,
      wallMs: clock.wallMs,
    });
    closers.push(() => usage.close());

    const admission = createAdmission(config.inflightBytesMax);
    const publisher = createPublisher({
      link,
      config,
      nowMs,
      processId,
      metrics,
      admission,
      log,
      streams,
    });
    closers.push(() => publisher.close());
    const shares = createProjectShares({
      link,
      config,
      projectsKnown: () => registry.projectsKnown,
    });
    closers.push(() => shares.close());
    const intake = createIntake({
      ...scanning(log, nowMs),
      projects: registry,
      publisher,
      records: createRecordWriter({
        uuids: createUuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
      }),
      metrics,
      shares,
      caps: { eventsMax: config.requestEventsMax, expansionMax: config.expansionMax },
      clientWarnings,
      nowMs,
      nextTurn: setImmediate,
      onBug: (bug) =>
        log.error(
          { err: bug },
          "one event made the intake throw and was refused; its neighbours were not",
        ),
    });
    await lowerBackgroundThreads();
    const refusal = () => publisher.refusal();
    const certificate = certificateOf(config);
    const renewal =
      certificate &&
      (await watchCertificate({ files: certificate, log, renew, nowMs: clock.wallMs }));
    closers.push(() => renewal?.close());
    const files = readStaticFiles(config.posthogJs);
    if (worker !== "joining") tellScripts(files, config.posthogJs, log);
    const http = createHttpServer({
      config: { ...config, ...connectionLimits(config) },
      intake,
      admission,
      metrics,
      clientWarnings,
      look: createEarlyLook(registry),
      log,
      clock,
      random: Math.random,
      refusal,
      connectionId,
      certificate,
      files,
    });
    function renew(): void {
      http.renewCertificate();
    }
    closers.push(() => http.close());
    if (renewal !== undefined) metrics.watch({ tlsCertificateExpiry: () => renewal.expirySeconds });
    metrics.watch({
      requestsInflight: () => http.inflight(),
      connections: () => http.connections.open,
      connectionsMax: () => http.connections.max,
      connectionsRefused: () =>
        Object.entries(http.connections.refused).map(([limit, value]) => ({
          labels: { limit },
          value,
        })),
      framesUnacked: () => publisher.framesUnacked,
      inflightBytes: () => admission.bytes,
      inflightBytesMax: () => admission.bytesMax,
      projectsOverShare: () => shares.projectsOver,
      projectsKnown: () => registry.projectsKnown,
      registryInDoubt: () => registry.fault !== undefined,
      streamBytes: () => watch.sizes().map(({ labels, bytes }) => ({ labels, value: bytes })),
      streamBytesMax: () =>
        watch.sizes().map(({ labels, bytesMax }) => ({ labels, value: bytesMax })),
      streamsRefused: () => watch.unfit(),
    });
    const port = await http.listen(config.host, config.port, worker ?? "alone");
    publicPort = port;
    whyNotReady = async () => [
      ...(registry.fault === undefined ? [] : [registry.fault]),
      ...(await watch.check()),
    ];
    const adminAt = worker ? {} : { adminHost: config.adminHost, adminPort };
    log.info({ host: config.host, port, ...adminAt }, "listening");

    const close = once(async (drainDelayMs?: number) => {
      whyNotReady = async () => ["shutting down"];
      admin?.readinessChanged();
      await delay(drainDelayMs ?? config.drainDelayMs);
      const deadlineMs = nowMs() + config.drainTimeoutMs;
      const left = await http.drain(config.drainTimeoutMs);
      await publisher.drain(deadlineMs);
      if (left > 0)
        log.warn({ requests: left }, "drain timed out: requests left without an answer");
      await closeAll(closers);
      log.info({}, "stopped");
    });
    return { port, adminPort, metrics, clientWarnings, readiness, warnings, close };
  } catch (error) {
    await closeAll(closers);
    throw error;
  }
}

function scanning(log: Log, nowMs: () => number): Pick<IntakeOptions, "createScanner" | "workMs"> {
  try {
    const { returnLargeBlocks, threadCpuMs } = loadAddon();
    returnLargeBlocks();
    return { createScanner: createNativeScanner, workMs: threadCpuMs };
  } catch (error) {
    log.warn(
      { err: error },
      "the native scanner is not there: scanning with JSON.parse, many times slower",
    );
    return { createScanner: createReferenceScanner, workMs: nowMs };
  }
}

function certificateOf({ tlsCert: cert, tlsKey: key }: Config): CertificateFiles | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

function connectionIdentity(
  { proxyProtocol }: Config,
  log: Pick<ProcessLog, "debug">,
): ConnectionId | undefined {
  try {
    return loadConnectionId();
  } catch (error) {
    if (proxyProtocol) throw new Error(proxyProtocolNeedsAddon, { cause: error });
    log.debug(
      { err: error },
      "the connection addon is not there: addresses are read with every request, not once",
    );
    return undefined;
  }
}

/** Where there are none, pages with the HTML snippet send nothing, and nobody hears of it. */
function tellScripts(files: StaticFiles | undefined, setting: string | undefined, log: Log): void {
  if (files !== undefined) {
    const { version, folder, names } = files;
    log.info({ version, folder, scripts: names.length }, "posthog-js is served at /static/");
  } else if (setting === "off") {
    log.info({}, "posthog-js is not served: PENSTOCK_POSTHOG_JS is off");
  } else {
    log.warn(
      {},
      "posthog-js is not served, so pages with the HTML snippet send nothing: name the package's folder in PENSTOCK_POSTHOG_JS, or set it to off",
    );
  }
}

/**
 * Connections in all leave descriptors over; those of one address leave half of them to everybody
 * else.
 */
function connectionLimits(config: Config): {
  connectionsMax: number;
  addressConnectionsMax: number;
} {
  const room = connectionsRoom(openFilesMax() ?? Number.POSITIVE_INFINITY);
  const connectionsMax = Math.min(config.connectionsMax ?? Number.POSITIVE_INFINITY, room);
  return {
    connectionsMax,
    addressConnectionsMax: config.addressConnectionsMax ?? Math.ceil(connectionsMax / 2),
  };
}

/** The last opened is the first closed. */
async function closeAll(closers: (() => Promise<void> | void)[]): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
}

function once<Given extends unknown[]>(
  action: (...given: Given) => Promise<void>,
): (...given: Given) => Promise<void> {
  let running: Promise<void> | undefined;
  return (...given) => {
    running ??= action(...given);
    return running;
  };
}
