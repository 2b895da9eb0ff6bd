// One server under test with its own nats-server; both are new. Each load is measured from an empty
// stream. The bench fails if the stream does not contain every acknowledged event.

import { measureRoundTrip, startFarNats } from "./far-nats.ts";
import { type ClosedLoop, type Load, type LoadRun, runLoad } from "./load.ts";
import { type BenchNats, type Sync, startNats } from "./nats.ts";
import {
  cpuSeconds,
  machineCpuSeconds,
  memoryBytes,
  processTree,
  resetPeakMemory,
  treeCpuSeconds,
  writtenBytes,
} from "./process-stats.ts";
import {
  type FrameScope,
  type Settings,
  startVariant,
  type Variant,
  type VariantServer,
} from "./variants.ts";

interface SessionOptions {
  readonly variant: Variant;
  readonly sync: Sync;
  readonly projects?: number;
  readonly partitions?: number;
  readonly frameScope?: FrameScope;
  readonly atomicBatches?: boolean;
  readonly replicas?: number;
  readonly workers?: number;
  readonly settings?: Settings | undefined;
  /**
   * Delay in milliseconds of responses of the first stream's leader. If undefined, the server
   * connects to all nodes.
   */
  readonly lateMs?: number;
  readonly closedLoop: ClosedLoop;
}

/**
 * The result of one load. Rates are rates of acknowledged events. CPU is user and system time of
 * all threads.
 */
export interface Measurement {
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly eventsPerSecond: number;
  readonly events: number;
  readonly messages: number;
  readonly serverCpuSecondsPerMillion: number;
  readonly natsCpuSecondsPerMillion: number;
  readonly natsBytesPerEvent: number;
  readonly serverCores: number;
  readonly natsCores: number;
  readonly clientCores: number;
  readonly otherCores: number;
  readonly peakBytes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly run: LoadRun;
}

export interface Session {
  readonly server: VariantServer;
  readonly nats: BenchNats | undefined;
  readonly roundTripMs: number | undefined;
  warmUp(load: Load, seconds: number): Promise<LoadRun>;
  measure(load: Load): Promise<Measurement>;
  close(): Promise<void>;
}

const million = 1e6;

export async function openSession(options: SessionOptions): Promise<Session> {
  const {
    variant,
    sync,
    projects = 1,
    partitions = 1,
    frameScope = "project",
    atomicBatches = true,
    replicas = 1,
    workers = 1,
    settings = {},
    lateMs,
    closedLoop,
  } = options;
  const nats = variant === "ceiling" ? undefined : await startNats(sync, partitions, replicas);
  let way: Way | undefined;
  try {
    await nats?.addProjects(projects);
    way = nats === undefined ? undefined : await wayTo(nats, lateMs);
    const natsUrl = way?.url ?? "";
    const server = await startVariant(variant, {
      natsUrl,
      projects,
      partitions,
      frameScope,
      atomicBatches,
      replicas,
      workers,
      settings,
    });
    return sessionOf({ variant, nats, way, server, closedLoop });
  } catch (error) {
    way?.close();
    await nats?.end();
    throw error;
  }
}

interface Way {
  readonly url: string;
  readonly roundTripMs: number | undefined;
  close(): void;
}

async function wayTo({ url, leaderUrl }: BenchNats, lateMs: number | undefined): Promise<Way> {
  const close = () => {};
  if (lateMs === undefined) return { url, roundTripMs: undefined, close };
  if (lateMs > 0) return await startFarNats(leaderUrl, lateMs);
  return { url: leaderUrl, roundTripMs: await measureRoundTrip(leaderUrl), close };
}

interface Parts {
  readonly variant: Variant;
  readonly nats: BenchNats | undefined;
  readonly way: Way | undefined;
  readonly server: VariantServer;
  readonly closedLoop: ClosedLoop;
}

function sessionOf({ variant, nats, way, server, closedLoop }: Parts): Session {
  const countsEvents = variant === "penstock" ? "by header" : "one a message";

  async function measure(load: Load): Promise<Measurement> {
    await emptied(nats);
    const storedBefore = await eventsStoredByOwnCount(server.adminUrl);
    const tree = processTree(server.child.pid);
    for (const pid of tree) resetPeakMemory(pid);
    const before = {
      server: treeCpuSeconds(server.child.pid),
      nats: sumOf(nats, cpuSeconds),
      written: sumOf(nats, writtenBytes),
      machine: machineCpuSeconds(),
    };
    const beganMs = performance.now();
    const run = await runLoad(server.url, load, closedLoop);
    const serverCpu = treeCpuSeconds(server.child.pid) - before.server;
    const natsCpu = sumOf(nats, cpuSeconds) - before.nats;
    const written = sumOf(nats, writtenBytes) - before.written;
    // The period includes the start and end of the generator, so the generator's own duration would
    // overstate the usage of other processes.
    const wallSeconds = (performance.now() - beganMs) / 1_000;
    const machineCores = (machineCpuSeconds() - before.machine) / wallSeconds;
    const usedCores = (serverCpu + natsCpu + run.clientCpuSeconds) / wallSeconds;
    const peakBytes = tree.reduce<number>((sum, pid) => sum + memoryBytes(pid, "VmHWM"), 0);
    const events = (run.requests - run.refused) * load.eventsPerRequest;
    const stored = nats === undefined ? { events, messages: 0 } : await nats.stored(countsEvents);
    reconcile({ load, run, acknowledged: events, stored: stored.events, variant });
    const storedAfter = await eventsStoredByOwnCount(server.adminUrl);
    if (storedAfter !== undefined && storedAfter - (storedBefore ?? 0) !== stored.events) {
      throw new Error(
        `${load.name}: Penstock counts ${storedAfter - (storedBefore ?? 0)} events, the stream holds ${stored.events}`,
      );
    }
    return {
      seconds: run.seconds,
      requestsPerSecond: (run.requests - run.refused) / run.seconds,
      eventsPerSecond: events / run.seconds,
      events,
      messages: stored.messages,
      serverCpuSecondsPerMillion: (serverCpu / stored.events) * million,
      natsCpuSecondsPerMillion: (natsCpu / stored.events) * million,
      natsBytesPerEvent: written / stored.events,
      serverCores: serverCpu / run.seconds,
      natsCores: natsCpu / run.seconds,
      clientCores: run.clientCpuSeconds / run.seconds,
      otherCores: Math.max(0, machineCores - usedCores),
      peakBytes,
      p50Ms: run.closedLoopMs?.p50 ?? Number.NaN,
      p99Ms: run.closedLoopMs?.p99 ?? Number.NaN,
      run,
    };
  }

  return {
    server,
    nats,
    roundTripMs: way?.roundTripMs,
    warmUp: (load, seconds) => runLoad(server.url, { ...load, seconds }, closedLoop),
    measure,
    async close() {
      await server.child.end();
      way?.close();
      await nats?.end();
    },
  };
}

async function emptied(nats: BenchNats | undefined): Promise<void> {
  if (nats === undefined) return;
  await nats.stored("one a message");
  do await nats.purge();
  while ((await nats.stored("one a message")).messages > 0);
}

function sumOf(nats: BenchNats | undefined, used: (pid: number) => number): number {
  return (nats?.pids ?? []).reduce((sum, pid) => sum + used(pid), 0);
}

interface Reconciled {
  readonly load: Load;
  readonly run: LoadRun;
  readonly acknowledged: number;
  readonly stored: number;
  readonly variant: Variant;
}

/**
 * The stream may have more events: a generator that stops leaves one request per connection
 * unanswered.
 */
function reconcile({ load, run, acknowledged, stored, variant }: Reconciled): void {
  const waitsForAll = load.unique === true || load.rate !== undefined;
  const unheard = waitsForAll ? 0 : load.connections * load.eventsPerRequest;
  const what = `${load.name}, ${variant}: ${acknowledged} events acknowledged, ${stored} stored`;
  if (run.refused > 0 || run.failed > 0) {
    throw new Error(`${what}; ${run.refused} requests refused, ${run.failed} without an answer`);
  }
  if (acknowledged === 0) throw new Error(`${what}: no request was answered`);
  if (stored < acknowledged || stored > acknowledged + unheard)
    throw new Error(`${what}: they must agree`);
}

async function eventsStoredByOwnCount(adminUrl: string | undefined): Promise<number | undefined> {
  if (adminUrl === undefined) return undefined;
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const sum = (pattern: RegExp) =>
    [...text.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
  return sum(/^penstock_events_total\{[^}]*outcome="stored"[^}]*\} (\S+)$/gm);
}
