// Applies the streams in a separate process. Measures the time from one sequence to another, and
// the CPU and memory of the process.

import { connect } from "@nats-io/transport-node";
import type { EffectsStore } from "../../src/readers/effects/store/port.ts";
import { PostgresStore } from "../../src/readers/effects/store/postgres/store.ts";
import { SqliteStore } from "../../src/readers/effects/store/sqlite/store.ts";
import { EffectsWriter } from "../../src/readers/effects/writer/effects-writer.ts";
import { eventsInFrame } from "./histories.ts";

export interface EffectsJob {
  readonly natsUrl: string;
  readonly database: string;
  readonly stream: string;
  readonly from: number;
  readonly to: number;
  readonly countsLinks: boolean;
}

export interface EffectsAnswer {
  readonly events: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly rssPeakBytes: number;
  readonly links: Readonly<Record<string, number>>;
}

const microsPerSecond = 1e6;
const kibibyte = 1_024;
const job = JSON.parse(process.argv[2] ?? "") as EffectsJob;
const { natsUrl, database, stream, from, to } = job;
const log = { info: () => {}, warn: () => {}, error: console.error };
const connection = await connect({ servers: natsUrl });
const store: EffectsStore = database.startsWith("postgres:")
  ? new PostgresStore({ url: database })
  : new SqliteStore({ file: database });
await store.open();
const writer = new EffectsWriter({ connection, prefix: "penstock", store, log: log as never });
writer.start();
await writer.positionsReached(new Map([[stream, from]]));
// A commit may include events after the awaited event, and the writer may have applied uncommitted
// events.
const begun = committed();
const before = { ms: performance.now(), cpu: process.cpuUsage() };
await writer.positionsReached(new Map([[stream, to]]));
if (begun >= to) throw new Error("one commit had all of it: the history is too short");
const cpu = process.cpuUsage(before.cpu);
const measured = {
  events: (to - begun) * eventsInFrame,
  seconds: (performance.now() - before.ms) / 1_000,
  cpuSeconds: (cpu.user + cpu.system) / microsPerSecond,
  rssPeakBytes: process.resourceUsage().maxRSS * kibibyte,
};
await writer.close();
const answer: EffectsAnswer = { ...measured, links: job.countsLinks ? await links() : {} };
await store.close();
await connection.close();
process.send?.(answer);
process.disconnect?.();

function committed(): number {
  const { streams } = writer.status(Date.now());
  return streams.find((one) => one.stream === stream)?.sequence ?? 0;
}

async function links(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const line of store.reader.dump()) {
    const outcome = /"outcome":"(\w+)"/.exec(line)?.[1];
    if (outcome !== undefined) counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}
