// A sink to PostHog is killed at random points, and the upstream sometimes fails. Events arrive in
// order per project and lane, and a repeated event has the same uuid.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startUpstream, type TestUpstream } from "../../../kit/posthog-upstream.ts";
import { randomFrames } from "../../../kit/random-events.ts";
import { storedLine, storeFrames, type TestFrame } from "../../../kit/stored-events.ts";
import { startSinkProcess } from "../../../kit/writer-process.ts";
import type { EffectsContext, EffectsScenario } from "../scenario.ts";

const kills = { short: 5, full: 200 };
const framesOfKill = 25;
const batchEvents = 12;
const repeatedMax = 5 * (batchEvents + 8);
const linesMax = 14;
const delayMsMax = 20;
const natsToo = 5;
const writtenMsMax = 120_000;

export const sinkPosthogKilled: EffectsScenario = {
  name: "sink-posthog-killed",
  title:
    "a sink to PostHog is killed (SIGKILL) at random points, while the upstream fails at times",
  databases: ["SQLite"],
  async run(context) {
    const { form, note, nats, random } = context;
    const upstream = await startUpstream();
    const folder = mkdtempSync(path.join(tmpdir(), "penstock-sink-posthog-"));
    const url = `posthog+${upstream.url}?state=${encodeURIComponent(folder)}`;
    const troubles = ["cut", { status: 503 }, { status: 200, body: "?" }] as const;
    upstream.play = async () => {
      await delay(random() * 10);
      return random() < 0.1 ? troubles[Math.floor(random() * troubles.length)] : undefined;
    };
    const frames: TestFrame[] = [];
    try {
      for (let nth = 1; nth <= kills[form]; nth++)
        frames.push(...(await oneDeath(context, { url, nth })));
      const both = [1, 2].map(() => startSinkProcess({ natsUrl: nats.url, url, batchEvents }));
      try {
        await untilAside(folder, frames.length);
      } finally {
        for (const { child } of both) child.kill("SIGKILL");
      }
      const repeated = repeatedIn(upstream, frames);
      note(`${kills[form]} kills, ${repeated} events were sent again`);
      const most = (kills[form] + 1) * repeatedMax;
      return [
        ...(repeated > most ? [`${repeated} events were sent again, ${most} may be`] : []),
        ...apartIn(upstream, frames),
        ...(asideIn(folder).size === frames.length ? [] : ["lines rejected more than once"]),
      ];
    } finally {
      await upstream.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function oneDeath(
  { connection, nats, random }: EffectsContext,
  { url, nth }: { readonly url: string; readonly nth: number },
): Promise<TestFrame[]> {
  const frames = randomFrames(random, { count: framesOfKill });
  await storeFrames(connection, frames.map(withBrokenLine));
  const sink = startSinkProcess({ natsUrl: nats.url, url, batchEvents });
  const killed = sink.killedAfter(1 + Math.floor(random() * linesMax), random() * delayMsMax);
  if (nth % natsToo === 0)
    await sink
      .said(/begin/)
      .then(() => nats.restart())
      .catch(() => {});
  await killed;
  return frames;
}

function withBrokenLine(frame: TestFrame): TestFrame {
  const { events, projectId, lane, messageId } = frame;
  const lines = events.map((event) => storedLine(event, projectId, lane));
  return { ...frame, text: [...lines, `broken ${messageId}`, ""].join("\n") };
}

function asideIn(folder: string): Set<string> {
  const lines = readFileSync(path.join(folder, "aside.ndjson"), "utf8").split("\n").slice(0, -1);
  const places = lines.map((line) => {
    const { stream, sequence, line: at } = JSON.parse(line) as Record<string, unknown>;
    return `${stream} ${sequence} ${at}`;
  });
  const single = new Set(places);
  if (single.size !== places.length) throw new Error("a line was rejected twice");
  return single;
}

async function untilAside(folder: string, count: number): Promise<void> {
  const deadline = performance.now() + writtenMsMax;
  for (;;) {
    const there = countIn(folder);
    if (there >= count) return;
    if (performance.now() > deadline) throw new Error(`only ${there} of ${count} messages`);
    await delay(50);
  }
}

function countIn(folder: string): number {
  try {
    return readFileSync(path.join(folder, "aside.ndjson"), "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
}

function sentBy(frames: readonly TestFrame[]): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const { projectId, lane, events } of frames)
    add(
      all,
      `${projectId} ${lane}`,
      events.map(({ uuid }) => uuid),
    );
  return all;
}

function takenBy({ taken }: TestUpstream): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const { api_key: key, historical_migration: isOld, batch } of taken)
    add(
      all,
      `${key} ${isOld === true ? "historical" : "live"}`,
      batch.map(({ uuid }) => uuid),
    );
  return all;
}

function add(all: Map<string, string[]>, name: string, uuids: readonly string[]): void {
  all.set(name, [...(all.get(name) ?? []), ...uuids]);
}

function repeatedIn(upstream: TestUpstream, frames: readonly TestFrame[]): number {
  const count = (all: Map<string, string[]>) => [...all.values()].flat().length;
  return count(takenBy(upstream)) - count(sentBy(frames));
}

function apartIn(upstream: TestUpstream, frames: readonly TestFrame[]): string[] {
  const taken = takenBy(upstream);
  return [...sentBy(frames)].flatMap(([name, uuids]) => {
    const [expected, found] = [uuids, taken.get(name) ?? []].map((all) => [...new Set(all)]);
    const at = expected!.findIndex((uuid, index) => uuid !== found![index]);
    const isLonger = found!.length > expected!.length;
    return at < 0 && !isLonger ? [] : [`${name}: event ${at}: ${expected![at]}, ${found![at]}`];
  });
}
