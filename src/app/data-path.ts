import { randomFillSync } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import type { QuickInflater } from "../gateway/body/inflate.ts";
import { watchCertificate } from "../gateway/http/certificate.ts";
import type { ConnectionAddon } from "../gateway/http/client/connection-id.ts";
import type { CertificateFiles } from "../gateway/http/listener.ts";
import { readStaticFiles, type StaticFiles } from "../gateway/http/pages/static-files.ts";
import { HttpServer } from "../gateway/http/server.ts";
import { Admission } from "../gateway/intake/admission.ts";
import { createIntake, type IntakeOptions } from "../gateway/intake/intake.ts";
import { createPeek } from "../gateway/intake/peek.ts";
import type { QuarantineTaker } from "../gateway/intake/quarantine-port.ts";
import type { Registry } from "../gateway/projects/registry/registry.ts";
import { openUsageBucket } from "../gateway/projects/usage/usage.ts";
import { GroupPublisher } from "../gateway/publish/publisher.ts";
import { Quarantine } from "../gateway/quarantine/quarantine.ts";
import { RejectedStreams } from "../gateway/quarantine/rejected-streams.ts";
import { StoredShares } from "../gateway/streams/project-shares.ts";
import { PassThrough } from "../gateway/upstream/pass-through.ts";
import type { Log } from "../platform/base/log.ts";
import { connectionsRoom, openFilesMax } from "../platform/base/open-files.ts";
import type { Tracing } from "../platform/base/tracing.ts";
import { workClock } from "../platform/base/turn-budget.ts";
import type { Config } from "../platform/settings/config.ts";
import { createNativeScanner, loadAddon } from "../records/native.ts";
import { JsonRecordWriter } from "../records/record.ts";
import { eventIdentity } from "../records/record-template.ts";
import { UuidSource } from "../records/uuid.ts";
import type { GatewayBase } from "./gateway-base.ts";
import type { StoreSide } from "./store-side.ts";

/**
 * V8 flags that inline more functions into the loops over the events of a body. With them, a batch
 * of 100 events takes 5 to 10 % less CPU. Compiling takes longer, on other threads and only in the
 * first seconds. The flags are set at runtime, because Node accepts them neither in
 * NODE_OPTIONS nor in the options of a worker.
 */
const inliningFlags = [
  "--max-inlined-bytecode-size=1000",
  "--max-inlined-bytecode-size-cumulative=10000",
  // Beyond this limit, V8 does not even inline small functions.
  "--max-inlined-bytecode-size-absolute=20000",
];

export interface DataPath {
  readonly admission: Admission;
  readonly publisher: GroupPublisher;
  readonly shares: StoredShares;
  readonly http: HttpServer;
}

interface HttpExtras {
  readonly connection: ConnectionAddon;
  readonly tracing: Tracing | undefined;
}

export async function openDataPath(
  base: GatewayBase,
  store: StoreSide,
  extras: HttpExtras,
): Promise<DataPath> {
  const { config, log, clock, metrics, closers } = base;
  const { link, streams, registry, processId } = store;
  const { monotonicMs } = clock;
  const ageMaxMs = Math.max(config.liveAgeMax, config.historicalAgeMax);
  const admission = new Admission(config.inflightBytesMax);
  const publisher = new GroupPublisher({
    link,
    config,
    monotonicMs,
    processId,
    metrics,
    admission,
    log,
    streams,
    identify: eventIdentity,
  });
  closers.add(() => publisher.close());
  const { subjectPrefix: prefix, replicas } = config;
  const shares = await StoredShares.open({
    link,
    streams,
    config,
    processId,
    log,
    monotonicMs,
    streamShareOf: (projectId) => registry.streamShareOf(projectId),
    projectsKnown: () => registry.projectsKnown,
    openBucket: () => openUsageBucket(link.connection, { prefix, replicas, log, ageMaxMs }),
  });
  closers.add(() => shares.close());
  const quarantine = openQuarantine(base, store);
  const http = await openHttp(base, store.registry, {
    admission,
    publisher,
    shares,
    quarantine,
    ...extras,
  });
  return { admission, publisher, shares, http };
}

/** Returns the quarantine; undefined if rejected events are only counted. */
function openQuarantine(
  { config, log, clock: { monotonicMs }, metrics, closers }: GatewayBase,
  { link, processId }: StoreSide,
): Quarantine | undefined {
  if (config.rejectedBytes === 0) {
    log.info(
      {},
      "rejected events are only counted: PENSTOCK_REJECTED_BYTES is 0, so rules and schemas that quarantine events discard them",
    );
    return undefined;
  }
  const streams = new RejectedStreams({ link, settings: config, log });
  closers.add(() => streams.close());
  const ensureStreams = () => streams.check();
  const quarantine = new Quarantine({
    link,
    config,
    processId,
    metrics,
    log,
    monotonicMs,
    ensureStreams,
  });
  closers.add(() => quarantine.close());
  metrics.watch({
    penstock_rejected_held_bytes: () => quarantine.heldBytes,
    penstock_rejected_stream_bytes: () =>
      streams.sizes().map(({ partition, bytes: value }) => ({
        labels: { partition: String(partition) },
        value,
      })),
  });
  return quarantine;
}

type HttpParts = Omit<DataPath, "http"> &
  HttpExtras & { readonly quarantine: QuarantineTaker | undefined };

async function openHttp(
  base: GatewayBase,
  registry: Registry,
  { admission, publisher, shares, quarantine, connection, tracing }: HttpParts,
): Promise<HttpServer> {
  const { config, log, worker, clock, metrics, clientWarnings, closers } = base;
  const { inflater, ...tools } = intakeTools(log, clock.monotonicMs);
  const intake = createIntake({
    ...tools,
    projects: registry,
    publisher,
    metrics,
    shares,
    clientWarnings,
    ...(quarantine && { quarantine }),
    caps: { eventsMax: config.requestEventsMax, expansionMax: config.expansionMax },
  });
  await lowerBackgroundThreads();
  const certificate = certificateOf(config);
  const renew = (): void => http.renewCertificate();
  const renewal =
    certificate &&
    (await watchCertificate({ files: certificate, log, renew, nowMs: clock.wallMs }));
  closers.add(() => renewal?.close());
  if (renewal !== undefined)
    metrics.watch({ penstock_tls_certificate_expiry_seconds: () => renewal.expirySeconds });
  const passThrough = openPassThrough(base);
  const files = readStaticFiles(config.posthogJs);
  if (worker !== "joining") logScripts(files, config.posthogJs, log);
  const http = new HttpServer({
    config: { ...config, ...connectionLimits(config) },
    intake,
    admission,
    metrics,
    clientWarnings,
    log,
    clock,
    connection,
    certificate,
    files,
    passThrough,
    inflater,
    tracing,
    peek: createPeek(registry),
    readsUserAgent: () => registry.readsUserAgent,
    workMs: tools.workMs,
    random: Math.random,
    refusal: (requestBytes) => publisher.refusal(requestBytes),
    outageMs: (lane, projectId) => publisher.outageMs(lane, projectId),
  });
  closers.add(() => http.close());
  return http;
}

function openPassThrough({
  config: { upstreamUrl, ...config },
  clock: { monotonicMs },
  log,
  metrics,
  worker,
  closers,
}: GatewayBase): PassThrough | undefined {
  if (upstreamUrl === undefined) return undefined;
  const passThrough = new PassThrough({
    config: { ...config, upstreamUrl },
    monotonicMs,
    ended: (kind, outcome) => metrics.requestPassed(kind, outcome),
  });
  closers.add(() => passThrough.close());
  metrics.watch({
    penstock_passed_inflight: () => passThrough.inflight,
    penstock_passed_kept_bytes: () => passThrough.keptBytes,
  });
  if (worker !== "joining")
    log.info(
      { upstream: upstreamUrl },
      "upstream set: the gateway forwards non-event requests of SDKs",
    );
  return passThrough;
}

type IntakeTools = Pick<
  IntakeOptions,
  "createScanner" | "workMs" | "records" | "monotonicMs" | "nextTurn" | "onBug"
> & {
  readonly inflater: QuickInflater;
};

function intakeTools(log: Log, monotonicMs: () => number): IntakeTools {
  const { Inflater, returnLargeBlocks, threadCpuMs } = loadAddon();
  returnLargeBlocks();
  for (const flag of inliningFlags) setFlagsFromString(flag);
  return {
    createScanner: createNativeScanner,
    workMs: workClock({ cpuMs: threadCpuMs, monotonicMs }),
    inflater: new Inflater(),
    records: new JsonRecordWriter({
      uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
    }),
    monotonicMs,
    nextTurn: setImmediate,
    onBug: (bug) =>
      log.error(
        { err: bug },
        "bug: the intake failed on an event and rejected it; other events of the request are not affected",
      ),
  };
}

function certificateOf({ tlsCert: cert, tlsKey: key }: Config): CertificateFiles | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

function logScripts(files: StaticFiles | undefined, setting: string | undefined, log: Log): void {
  if (files !== undefined) {
    const { version, folder, names } = files;
    log.info({ version, folder, scripts: names.length }, "posthog-js is served at /static/");
  } else if (setting === "off") {
    log.info({}, "posthog-js is not served: PENSTOCK_POSTHOG_JS is off");
  } else {
    log.warn(
      {},
      "posthog-js is not served: pages with the HTML snippet send no events; set PENSTOCK_POSTHOG_JS to the folder of the package, or to off",
    );
  }
}

function connectionLimits(config: Config): {
  connectionsMax: number;
  addressConnectionsMax: number;
} {
  const room = connectionsRoom(openFilesMax() ?? Number.POSITIVE_INFINITY);
  const connectionsMax = Math.min(config.connectionsMax ?? Number.POSITIVE_INFINITY, room);
  return {
    connectionsMax,
    addressConnectionsMax: config.addressConnectionsMax ?? Math.ceil(connectionsMax / 4),
  };
}

/**
 * Number of nice levels between the pool threads and the event loop. If the CPU is busy, a pool
 * thread then gets a third of the CPU time of the event loop.
 */
const stepsBelow = 5;
const priorityMin = 19;
const tasks = "/proc/self/task";
const poolThread = "libuv-worker\n";

/**
 * Lowers the priority of the pool threads, so that large bodies of one client do not delay other
 * clients. This works only on Linux, where each thread has its own priority.
 */
async function lowerBackgroundThreads(): Promise<void> {
  try {
    const threads = await readdir(tasks);
    const names = await Promise.all(
      threads.map((thread) => readFile(`${tasks}/${thread}/comm`, "utf8").catch(() => "")),
    );
    const priority = Math.min(getPriority() + stepsBelow, priorityMin);
    for (const [index, thread] of threads.entries())
      if (names[index] === poolThread) setPriority(Number(thread), priority);
  } catch {}
}
