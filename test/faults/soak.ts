// A long run: mixed load, a fault every few minutes, and a line per minute of the gateway's
// resources. At the end every event is compared with its answer.

import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { type Driver, startDriver } from "./driver.ts";
import { createEvents } from "./event-kinds.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { leftoversOf } from "./leftovers.ts";
import { createProxiedStore } from "./proxied-store.ts";
import { randomFrom } from "./random.ts";
import { addProjects, brokenPromises } from "./run-scenario.ts";
import type { LoadShape } from "./senders.ts";
import { createStreamReader } from "./settle.ts";
import { type SoakFault, soakFaults } from "./soak-faults.ts";
import { type SoakSample, sampleHeading, sampleLine, sampleOf } from "./soak-sample.ts";

interface SoakOptions {
  readonly durationMs: number;
  readonly binary: string;
  readonly json: string | undefined;
  readonly recoveryMsMax: number;
  readonly seed: number;
}

interface FaultNote {
  readonly atMs: number;
  readonly fault: string;
  readonly recoveryMs: number | undefined;
}

const shape: LoadShape = {
  singleConnections: 24,
  singlePauseMs: 22,
  batchConnections: 8,
  batchPauseMs: 190,
  batchEvents: 50,
  largePauseMs: 10_000,
  importPauseMs: 90,
  largeImportEvery: 200,
};
const eventsPerSecondMax = 1_500;
const streamBytesMax = 24 * 1_073_741_824;
const sampleEveryMs = 60_000;
const faultEveryMsMax = 240_000;
const faultsMin = 8;
const quietAtEndMs = 20_000;
const recoveryWatchMs = 20_000;
const settledMs = 1_500;
const breakMs = 500;

export async function soak({
  durationMs,
  binary,
  json,
  recoveryMsMax,
  seed,
}: SoakOptions): Promise<number> {
  const store = await createProxiedStore({ binary });
  const env = {
    PENSTOCK_NATS_URL: store.gatewayUrl,
    PENSTOCK_STREAM_BYTES_MAX: String(streamBytesMax),
  };
  const gateway = await startGatewayProcess({ command: "serve", env });
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () =>
      stop.signal.aborted ? process.exit(128 + constants.signals[signal]) : stop.abort(),
    );
  }
  try {
    const events = createEvents(Math.ceil((durationMs / 1_000 + 60) * eventsPerSecondMax));
    await addProjects(store, gateway, events);
    const { url } = gateway;
    const driver = startDriver({
      urls: [url],
      events,
      load: "mixed",
      shape,
      mayLoseConnections: false,
      mayRefuse: true,
      breakMs,
    });
    const startedMs = performance.now();
    const endMs = startedMs + durationMs;
    const samples: SoakSample[] = [];
    const faults: FaultNote[] = [];
    const report = (): void => {
      if (json !== undefined)
        writeFileSync(json, `${JSON.stringify({ seed, samples, faults }, undefined, 2)}\n`);
    };
    const watching = sampleOnAndOn(
      async () => {
        samples.push(await sampleOf({ gateway, store, driver, startedMs, before: samples.at(-1) }));
        process.stdout.write(`${sampleLine(samples.at(-1)!)}\n`);
        report();
      },
      { endMs, signal: stop.signal },
    );
    process.stdout.write(`${sampleHeading}\n`);
    const random = randomFrom(seed);
    for (const fault of soakFaults(durationMs, random)) {
      const everyMs = Math.min(faultEveryMsMax, durationMs / faultsMin);
      // Regular faults would always coincide with other periodic work, so the pauses vary.
      await delay(everyMs * (0.75 + random() / 2), undefined, { signal: stop.signal }).catch(
        () => {},
      );
      if (stop.signal.aborted || performance.now() > endMs - quietAtEndMs) break;
      faults.push(await cause(fault, store, driver));
    }
    await watching;
    await driver.stop();
    const leftovers = await leftoversOf(gateway);
    process.stdout.write("reading what is stored\n");
    const reader = createStreamReader(store, events);
    await reader.read();
    const settlement = reader.settlement();
    const late = faults.filter(
      ({ recoveryMs }) => recoveryMs === undefined || recoveryMs > recoveryMsMax,
    );
    const broken = [
      ...brokenPromises(settlement),
      ...driver.strange,
      ...leftovers,
      ...late.map(
        ({ fault, recoveryMs }) =>
          `after "${fault}" the 200 answers came back after ${recoveryMs ?? "more than 20,000"} ms`,
      ),
    ];
    process.stdout.write(`\n${sampleHeading}\n`);
    for (const sample of [samples[1] ?? samples[0], samples.at(-1)])
      if (sample) process.stdout.write(`${sampleLine(sample)}\n`);
    const { damaged: _, ...totals } = settlement;
    process.stdout.write(
      `\n${JSON.stringify(totals)}\n${JSON.stringify(Object.fromEntries(driver.counts.answers))}\n`,
    );
    for (const fault of broken) process.stdout.write(`BROKEN: ${fault}\n`);
    process.stdout.write(broken.length === 0 ? "all promises kept\n" : "");
    if (json !== undefined)
      writeFileSync(
        json,
        `${JSON.stringify({ seed, samples, faults, totals, broken }, undefined, 2)}\n`,
      );
    await gateway.kill("SIGTERM");
    return broken.length === 0 ? 0 : 1;
  } finally {
    await gateway.kill("SIGKILL");
    await store.remove();
  }
}

type SoakStore = Awaited<ReturnType<typeof createProxiedStore>>;

async function cause(fault: SoakFault, store: SoakStore, driver: Driver): Promise<FaultNote> {
  const atMs = Math.round(performance.now());
  driver.faultBegun();
  await fault.run(store);
  driver.faultEnded();
  const recoveryMs = await driver.recovered(settledMs, recoveryWatchMs);
  const back =
    recoveryMs === undefined ? "NOT BACK" : `200 answers again after ${Math.round(recoveryMs)} ms`;
  process.stdout.write(`  ${fault.title}: ${back}\n`);
  return { atMs, fault: fault.title, recoveryMs };
}

async function sampleOnAndOn(
  sample: () => Promise<void>,
  { endMs, signal }: { endMs: number; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const waitMs = Math.min(sampleEveryMs, endMs - performance.now());
    if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => {});
    await sample();
    if (signal.aborted || performance.now() >= endMs) return;
  }
}
