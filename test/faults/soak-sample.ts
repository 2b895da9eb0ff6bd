// One line of a soak run: the current resources of the gateway and its nats-server, and the answers
// so far.

import { readdirSync, readFileSync } from "node:fs";
import { memoryBytes } from "../../bench/harness/process-stats.ts";
import type { Driver } from "./driver.ts";
import type { GatewayProcess, Store } from "./scenario.ts";

export interface SoakSample {
  readonly minute: number;
  readonly eventsPerSecond: number;
  readonly rssMebibytes: number;
  readonly heapMebibytes: number;
  readonly descriptors: number;
  readonly natsRssMebibytes: number;
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  readonly inflightBytes: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly cpuPressure: number;
  readonly atMs: number;
}

interface SampleOptions {
  readonly gateway: GatewayProcess;
  readonly store: Store;
  readonly driver: Driver;
  readonly startedMs: number;
  readonly before: SoakSample | undefined;
}

const mebibyte = 1_048_576;
const metricsTimeoutMs = 5_000;

export async function sampleOf({
  gateway,
  store,
  driver,
  startedMs,
  before,
}: SampleOptions): Promise<SoakSample> {
  const metrics = await metricsOf(gateway);
  const atMs = performance.now();
  const { acknowledged, refused, unknown } = driver.counts;
  const [sinceMs, sinceEvents] =
    before === undefined ? [startedMs, 0] : [before.atMs, before.acknowledged];
  const delayMs = (stat: string): number =>
    metrics(`penstock_event_loop_delay_seconds{stat="${stat}"}`) * 1_000;
  return {
    minute: (atMs - startedMs) / 60_000,
    eventsPerSecond: ((acknowledged - sinceEvents) / (atMs - sinceMs)) * 1_000,
    rssMebibytes: memoryBytes(gateway.pid, "VmRSS") / mebibyte,
    heapMebibytes: metrics("nodejs_heap_size_used_bytes") / mebibyte,
    descriptors: descriptorsOf(gateway.pid),
    natsRssMebibytes: memoryBytes(store.nodes[0]?.pid, "VmRSS") / mebibyte,
    delayP50Ms: delayMs("p50"),
    delayP99Ms: delayMs("p99"),
    delayMaxMs: delayMs("max"),
    inflightBytes: metrics("penstock_inflight_bytes"),
    acknowledged,
    refused,
    unknown,
    cpuPressure: cpuPressure(),
    atMs,
  };
}

const columns: readonly (readonly [string, (sample: SoakSample) => string])[] = [
  ["minute", (sample) => sample.minute.toFixed(1)],
  ["events/s", (sample) => whole(sample.eventsPerSecond)],
  ["RSS MiB", (sample) => whole(sample.rssMebibytes)],
  ["heap MiB", (sample) => whole(sample.heapMebibytes)],
  ["descriptors", (sample) => whole(sample.descriptors)],
  ["nats RSS MiB", (sample) => whole(sample.natsRssMebibytes)],
  ["delay p50 ms", (sample) => sample.delayP50Ms.toFixed(2)],
  ["p99", (sample) => sample.delayP99Ms.toFixed(2)],
  ["max", (sample) => sample.delayMaxMs.toFixed(1)],
  ["in-flight bytes", (sample) => whole(sample.inflightBytes)],
  ["acknowledged", (sample) => whole(sample.acknowledged)],
  ["refused", (sample) => whole(sample.refused)],
  ["unknown", (sample) => whole(sample.unknown)],
  ["CPU wait %", (sample) => whole(sample.cpuPressure)],
];
const widthMin = 8;

export const sampleHeading = columns.map(([heading]) => heading.padStart(widthMin)).join("  ");

export function sampleLine(sample: SoakSample): string {
  return columns
    .map(([heading, text]) => text(sample).padStart(Math.max(widthMin, heading.length)))
    .join("  ");
}

function whole(value: number): string {
  return Number.isNaN(value) ? "-" : Math.round(value).toLocaleString("en");
}

async function metricsOf({ adminUrl }: GatewayProcess): Promise<(series: string) => number> {
  try {
    const response = await fetch(`${adminUrl}/metrics`, {
      signal: AbortSignal.timeout(metricsTimeoutMs),
    });
    const lines = (await response.text()).split("\n");
    return (series) =>
      Number(
        lines.find((line) => line.startsWith(`${series} `))?.slice(series.length + 1) ?? Number.NaN,
      );
  } catch {
    return () => Number.NaN;
  }
}

function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return Number.NaN;
  }
}

function cpuPressure(): number {
  try {
    return Number(
      /some .*avg60=(\S+)/.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1] ?? Number.NaN,
    );
  } catch {
    return Number.NaN;
  }
}
