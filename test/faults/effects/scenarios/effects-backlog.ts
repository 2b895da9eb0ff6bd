// Millions of events wait when the writer starts. It applies them in order, and its memory does not
// grow with the backlog.

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import { type OpenReader, readerAt } from "../../../../src/readers/effects/store/open.ts";
import { storedLine, type TestEvent, uuidOf } from "../../../kit/stored-events.ts";
import { startWriterProcess } from "../../../kit/writer-process.ts";
import type { EffectsContext, EffectsScenario } from "../scenario.ts";

const events = { short: 20_000, full: 10_000_000 };
const eventsInFrame = 1_000;
const batchEvents = 20_000;
const ahead = 32;
const projectId = "backlog";
const stream = "PENSTOCK_LIVE_0";
const startMs = Date.UTC(2026, 10, 20, 12);
const sampleMs = 250;
const stillMsMax = 60_000;
const mebibyte = 1_048_576;
const kibibyte = 1_024;
const growthMax = 1.3;
const growthBytesMin = 96 * mebibyte;

interface Sample {
  readonly sequence: number;
  readonly rssBytes: number;
}

export const effectsBacklog: EffectsScenario = {
  name: "effects-backlog",
  title: "a backlog of millions of events is processed without growing memory",
  async run(context) {
    const { databases, form, nats, note } = context;
    const frames = events[form] / eventsInFrame;
    await fill(context, frames);
    const place = await databases.newDatabase();
    const begunMonotonicMs = performance.now();
    const { child } = startWriterProcess({ natsUrl: nats.url, place, batchEvents });
    const reader = await readerAt(place);
    try {
      const samples = await sampled(reader, child.pid!, frames);
      const seconds = (performance.now() - begunMonotonicMs) / 1_000;
      const usage = await counted(reader);
      const expected = frames * eventsInFrame;
      note(
        `${expected} events in ${seconds.toFixed(0)} s; resident MiB at tenths of the way: ${tenths(samples, frames).join(" ")}`,
      );
      return [
        ...(usage === expected ? [] : [`${usage} of ${expected} events are counted`]),
        ...growthOf(samples, frames),
      ];
    } finally {
      child.kill("SIGKILL");
      await reader.close();
    }
  },
};

function eventOf(index: number): TestEvent {
  const uuid = uuidOf(index);
  const receivedAtMs = startMs + index;
  const event = { uuid, receivedAtMs, distinctId: `user-${(index * 7_919) % 50_000}` };
  const properties = { $current_url: "https://example.com/pricing?plan=pro", $lib: "web" };
  if (index % 50 === 1) {
    const anonymous = { ...properties, $anon_distinct_id: `anonymous-${index}` };
    return { ...event, event: "$identify", kind: "identify", properties: anonymous };
  }
  if (index % 10 === 0) return { ...event, distinctId: `new-${index}`, properties };
  if (index % 3 === 0) return { ...event, properties, set: { plan: "pro", seen: index } };
  return { ...event, properties };
}

async function fill({ connection }: EffectsContext, frames: number): Promise<void> {
  const js = jetstream(connection);
  const waiting = new Set<Promise<unknown>>();
  for (let frame = 0; frame < frames; frame++) {
    const head = headers();
    head.set("Nats-Msg-Id", String(frame));
    head.set("Penstock-Events", String(eventsInFrame));
    head.set("Penstock-Schema", "1");
    let text = "";
    for (let line = 0; line < eventsInFrame; line++)
      text += `${storedLine(eventOf(frame * eventsInFrame + line), projectId, "live")}\n`;
    const stored = js.publish(`penstock.live.0.${projectId}`, text, {
      headers: head,
      timeout: 30_000,
    });
    waiting.add(stored);
    void stored.then(() => waiting.delete(stored));
    if (waiting.size >= ahead) await Promise.race(waiting);
  }
  await Promise.all(waiting);
}

async function sampled(reader: OpenReader, pid: number, frames: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  let movedMonotonicMs = performance.now();
  for (let last = -1; last < frames; ) {
    await delay(sampleMs);
    const sequence = await appliedTo(reader);
    samples.push({ sequence, rssBytes: rssBytesOf(pid) });
    if (sequence !== last) movedMonotonicMs = performance.now();
    if (performance.now() - movedMonotonicMs > stillMsMax)
      throw new Error(`apply the backlog: nothing since message ${sequence}`);
    last = sequence;
  }
  return samples;
}

async function appliedTo(reader: OpenReader): Promise<number> {
  const applied = await reader.applied().catch(() => []);
  return applied.find((one) => one.stream === stream)?.sequence ?? 0;
}

function rssBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * kibibyte;
}

async function counted(reader: OpenReader): Promise<number> {
  const rows = await reader.usage(projectId, { from: "2026-01-01", to: "2026-12-31" });
  return rows.reduce((sum, row) => sum + row.events, 0);
}

function peakBetween(samples: readonly Sample[], from: number, to: number): number {
  const within = samples.filter(({ sequence }) => sequence > from && sequence <= to);
  return Math.max(0, ...within.map(({ rssBytes }) => rssBytes));
}

function tenths(samples: readonly Sample[], frames: number): number[] {
  return Array.from({ length: 10 }, (_, tenth) =>
    Math.round(peakBetween(samples, (tenth * frames) / 10, ((tenth + 1) * frames) / 10) / mebibyte),
  );
}

function growthOf(samples: readonly Sample[], frames: number): string[] {
  const [first, second] = [
    peakBetween(samples, 0, frames / 2),
    peakBetween(samples, frames / 2, frames),
  ];
  if (first === 0 || second <= Math.max(growthMax * first, first + growthBytesMin)) return [];
  return [
    `its memory has grown from ${Math.round(first / mebibyte)} MiB in the first half to ${Math.round(second / mebibyte)} MiB in the second`,
  ];
}
