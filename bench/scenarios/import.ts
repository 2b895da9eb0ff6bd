// The rate at which `penstock import` sends a file of each kind into the historical lane of a
// gateway. For comparison, measures a simple script with the first kind.

import { createWriteStream, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Bench, inOrder } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { keyOf, startNats, workFolder } from "../harness/nats.ts";
import { cpuSeconds, machineCpuSeconds, memoryBytes } from "../harness/process-stats.ts";
import { startVariant } from "../harness/variants.ts";

const root = resolve(import.meta.dirname, "../..");
const penstock = join(root, "dist", "main.js");
const script = join(root, "bench", "baseline", "import-script.ts");
const events = { full: 1_000_000, quick: 200_000 };
const million = 1e6;
const importMsMax = 300_000;
const sampledEveryMs = 20;

type MakeLine = (n: number) => object;

const timeOf = (n: number): string => new Date(1_600_000_000_000 + n * 1_000).toISOString();
const idOf = (n: number): string => `018f0000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
const userOf = (n: number): string => `user-${n % 1_000}`;
const propertiesOf = (n: number): object => ({
  plan: "pro",
  $current_url: `https://example.com/page/${n}`,
  $browser: "Chrome",
  n,
  $os: "Linux",
  referrer: "https://example.org/a/long/way/here".padEnd(120, "/"),
});

const withoutUuid: MakeLine = (n) => ({
  event: "seen",
  distinct_id: userOf(n),
  timestamp: timeOf(n),
  properties: propertiesOf(n),
});

const files: Readonly<Record<string, MakeLine>> = {
  "events as they stand": (n) => ({ uuid: idOf(n), ...withoutUuid(n) }),
  "events without a uuid": withoutUuid,
  "Segment calls": (n) => ({
    type: "track",
    messageId: `m-${n}`,
    event: "seen",
    userId: userOf(n),
    timestamp: timeOf(n),
    properties: propertiesOf(n),
    context: { ip: "192.0.2.1" },
  }),
  "Mixpanel's export": (n) => ({
    event: "seen",
    properties: {
      time: 1_600_000_000 + n,
      distinct_id: userOf(n),
      $insert_id: `i-${n}`,
      ...propertiesOf(n),
    },
  }),
  "Amplitude's export": (n) => ({
    event_type: "seen",
    uuid: idOf(n),
    user_id: userOf(n),
    device_id: "d",
    event_time: timeOf(n),
    event_properties: propertiesOf(n),
    user_properties: { a: 1 },
  }),
};

const importCommand = "penstock import";
const scriptName = "a script";

export async function importing(bench: Bench): Promise<void> {
  const count = bench.quick ? events.quick : events.full;
  const folder = mkdtempSync(join(workFolder, "body-import-"));
  const cells = Object.keys(files).map((kind) => ({ kind, by: importCommand }));
  cells.push({ kind: Object.keys(files)[0]!, by: scriptName });
  try {
    for (const [index, make] of Object.values(files).entries())
      await pipeline(linesOf(make, count), createWriteStream(fileOf(folder, index)));
    const rounds = bench.rounds(3);
    for (let round = 1; round <= rounds; round++) {
      for (const { kind, by } of inOrder(cells, round)) {
        const file = fileOf(folder, Object.keys(files).indexOf(kind));
        const values = await imported(file, by === importCommand, count);
        bench.note({ group: "import", scenario: kind, variant: by, sync: "always", round, values });
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function fileOf(folder: string, index: number): string {
  return join(folder, `${index}.ndjson`);
}

function* linesOf(make: MakeLine, count: number): Generator<string, void, void> {
  for (let from = 0; from < count; from += 1_000) {
    let text = "";
    for (let n = from; n < Math.min(count, from + 1_000); n++)
      text += `${JSON.stringify(make(n))}\n`;
    yield text;
  }
}

async function imported(
  file: string,
  byCommand: boolean,
  count: number,
): Promise<Record<string, number>> {
  const nats = await startNats("always", 1);
  try {
    await nats.addProjects(1);
    const { child: gateway, url } = await startVariant("penstock", { natsUrl: nats.url });
    try {
      const args = byCommand
        ? [penstock, "import", "--restart", "--url", url, "--key", keyOf(0), file]
        : ["--disable-warning=ExperimentalWarning", script, url, keyOf(0), file];
      const before = [cpuSeconds(gateway.pid), cpuSeconds(nats.pid), machineCpuSeconds()] as const;
      const begunMs = performance.now();
      const child = startChild({ program: process.execPath, args });
      let [clientSeconds, peakBytes] = [0, 0];
      const timer = setInterval(() => {
        // The CPU is NaN after the process has ended.
        clientSeconds = Math.max(clientSeconds, cpuSeconds(child.pid) || 0);
        peakBytes = Math.max(peakBytes, memoryBytes(child.pid, "VmHWM") || 0);
      }, sampledEveryMs);
      await child.finished(importMsMax);
      clearInterval(timer);
      const seconds = (performance.now() - begunMs) / 1_000;
      const [server, store, machine] = [
        cpuSeconds(gateway.pid) - before[0],
        cpuSeconds(nats.pid) - before[1],
        machineCpuSeconds() - before[2],
      ] as [number, number, number];
      if (byCommand) checkAll(file, count);
      return {
        eventsPerSecond: count / seconds,
        serverCpuSecondsPerMillion: (server / count) * million,
        clientCpuSecondsPerMillion: (clientSeconds / count) * million,
        serverCores: server / seconds,
        natsCores: store / seconds,
        clientCores: clientSeconds / seconds,
        peakBytes,
        otherCores: (machine - server - store - clientSeconds) / seconds,
      };
    } finally {
      await gateway.end();
    }
  } finally {
    await nats.end();
  }
}

function checkAll(file: string, count: number): void {
  const { counts } = JSON.parse(readFileSync(`${file}.penstock-import`, "utf8")) as {
    counts: { stored: number };
  };
  if (counts.stored !== count)
    throw new Error(`import ${count} lines: ${counts.stored} are stored`);
}
