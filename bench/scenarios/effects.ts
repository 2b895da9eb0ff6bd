// The number of events per second that the effects process applies from the stream. For comparison,
// measures the rate that the gateway accepts.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { eventsHeader, streamName } from "../../src/platform/nats/names.ts";
import { startPostgres, type TestPostgres } from "../../test/kit/postgres.ts";
import { eventsInFrame, frameText, type History, histories } from "../effects/histories.ts";
import type { EffectsAnswer, EffectsJob } from "../effects/worker.ts";
import { type Bench, inOrder, runCells } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { type BenchNats, startNats, workFolder } from "../harness/nats.ts";
import { batches } from "./loads.ts";

type Links = EffectsAnswer["links"];

const worker = join(import.meta.dirname, "..", "effects", "worker.ts");
const workerMsMax = 300_000;
const million = 1e6;
const projectId = "bench";
export const benchStream = streamName("penstock", "live", 0);
const ahead = 64;
const quickEventsMin = 300_000;

export async function effects(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  const databases = bench.quick ? ["SQLite"] : ["SQLite", "PostgreSQL"];
  await runCells(bench, {
    group: "effects",
    cells: [{ variant: "penstock", sync: "always" }],
    loads: () => [batches(100, bench.quick ? 1 : 2)],
    rounds,
    warmUpSeconds: 1,
    warmEach: true,
  });
  const cells = histories.flatMap((history) => databases.map((name) => ({ history, name })));
  for (let round = 1; round <= rounds; round++) {
    for (const { history, name } of inOrder(cells, round)) {
      const answer = await applied(name === "PostgreSQL", bench.quick ? short(history) : history);
      bench.note({
        group: "effects",
        scenario: history.name,
        variant: name,
        sync: "",
        round,
        values: {
          eventsPerSecond: answer.events / answer.seconds,
          serverCpuSecondsPerMillion: (answer.cpuSeconds / answer.events) * million,
          peakBytes: answer.rssPeakBytes,
        },
      });
    }
  }
}

function short(history: History): History {
  return { ...history, events: Math.max(history.events / 10, quickEventsMin) };
}

async function applied(isPostgres: boolean, history: History): Promise<EffectsAnswer> {
  const folder = mkdtempSync(join(workFolder, "effects-"));
  const nats = await startNats("lazy", 1);
  let postgres: TestPostgres | undefined;
  try {
    const from = history.warmUpEvents / eventsInFrame;
    const to = from + history.events / eventsInFrame;
    await fill(nats, history, to);
    if (isPostgres) postgres = await startPostgres({ durable: true });
    const database = postgres?.url ?? join(folder, "effects.sqlite");
    const countsLinks = history.outcome !== undefined;
    const job: EffectsJob = {
      natsUrl: nats.url,
      database,
      stream: benchStream,
      from,
      to,
      countsLinks,
    };
    const args = ["--disable-warning=ExperimentalWarning", worker, JSON.stringify(job)];
    const child = startChild({ program: process.execPath, args, ipc: true });
    const answer = await child.message<EffectsAnswer>(workerMsMax);
    await child.end();
    checkLinks(history, answer.links);
    return answer;
  } finally {
    await postgres?.remove();
    await nats.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function checkLinks({ name, outcome, warmUpEvents, events }: History, links: Links): void {
  if (outcome === undefined) return;
  const all = Object.values(links).reduce((sum, count) => sum + count, 0);
  const others = all - (links[outcome] ?? 0);
  if (all !== warmUpEvents + events || others > warmUpEvents)
    throw new Error(`measure "${name}": the links ended as ${JSON.stringify(links)}`);
}

export async function fill(nats: BenchNats, history: History, frames: number): Promise<void> {
  const js = jetstream(nats.connection);
  const waiting = new Set<Promise<unknown>>();
  for (let frame = 0; frame < frames; frame++) {
    const head = headers();
    head.set("Nats-Msg-Id", String(frame));
    head.set("Penstock-Schema", "1");
    head.set(eventsHeader, String(eventsInFrame));
    const text = frameText(history, frame, projectId);
    const stored = js.publish(`penstock.live.0.${projectId}`, text, { headers: head });
    waiting.add(stored);
    void stored.then(() => waiting.delete(stored));
    if (waiting.size >= ahead) await Promise.race(waiting);
  }
  await Promise.all(waiting);
}
