// A sink is killed at random points, sometimes together with nats-server or the database. Each
// event is written once. Each message also has a line that is not a record; sinks do not
// deduplicate such lines.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../../../src/platform/nats/api.ts";
import { findStreams, storedStream } from "../../../../src/readers/stream/stored-stream.ts";
import { urlOf } from "../../../kit/effects-databases.ts";
import { randomFrames } from "../../../kit/random-events.ts";
import { eventsAt, eventsIn, positionsAt, rejectedAt, twiceAt } from "../../../kit/sink-events.ts";
import { storedLine, storeFrames, type TestFrame } from "../../../kit/stored-events.ts";
import { startSinkProcess } from "../../../kit/writer-process.ts";
import type { EffectsContext, EffectsScenario } from "../scenario.ts";

const kills = { short: 5, full: 200 };
const framesOfKill = 25;
/** Few events per batch, so that there are many batches in which a kill can happen. */
const batchEvents = 12;
const twiceMax = batchEvents + 8;
const lastBatchEvents = 2_000;
const linesMax = 14;
const delayMsMax = { commit: 8, files: 250 };
const shared = { nats: 3, database: 4, frozen: 5 };
const frozenMs = 50;
const questionMs = 10_000;
const writtenMsMax = 120_000;

export const sinkKilled: EffectsScenario = {
  name: "sink-killed",
  title: "a sink is killed (SIGKILL) at random points, at times with its servers",
  databases: ["PostgreSQL", "ClickHouse", "Parquet files"],
  async run(context) {
    const { connection, form, note, nats } = context;
    const url =
      context.clickhouse?.url ?? context.parquet ?? urlOf(await context.databases.newDatabase());
    const frames: TestFrame[] = [];
    let said = 0;
    for (let nth = 1; nth <= kills[form]; nth++)
      said += await oneDeath(context, { url, nth, frames });
    const last = { natsUrl: nats.url, url, batchEvents: lastBatchEvents };
    const both = [1, 2].map(() => startSinkProcess(last));
    try {
      await untilWritten(connection, url);
      for (const { child } of both) child.kill("SIGTERM");
      await Promise.all(both.map(({ child }) => once(child, "exit")));
    } finally {
      for (const { child } of both) child.kill("SIGKILL");
    }
    const expected = eventsIn(frames);
    const found = await eventsAt(url);
    const rejected = await rejectedAt(url);
    const twice = await twiceAt(url);
    note(
      `${kills[form]} kills, ${said} begins and ends of commits before them, ${found.length} events, ${twice} of them written twice`,
    );
    const lines = `${rejected.count} lines rejected, of ${rejected.places} places; ${frames.length} were sent`;
    const isRight = rejected.count === frames.length && rejected.places === frames.length;
    const faults = isRight ? [] : [lines];
    if (context.parquet !== undefined)
      return [...faults, ...apartAt(expected, [...new Set(found)]), ...tooOften(frames, found)];
    // ClickHouse may start an insert of a killed sink late, which repeats its rows. FINAL hides
    // repeated rows, so this query counts them.
    if (twice > twiceMax) faults.push(`${twice} rows are there twice`);
    return [...faults, ...apartAt(expected, found)];
  },
};

async function oneDeath(
  { connection, databases, clickhouse, parquet, nats, random }: EffectsContext,
  {
    url,
    nth,
    frames,
  }: { readonly url: string; readonly nth: number; readonly frames: TestFrame[] },
): Promise<number> {
  const some = randomFrames(random, { count: framesOfKill });
  await storeFrames(connection, some.map(withBrokenLine));
  frames.push(...some);
  const sink = startSinkProcess({ natsUrl: nats.url, url, batchEvents });
  const delayMs = random() * (parquet === undefined ? delayMsMax.commit : delayMsMax.files);
  const killed = sink.killedAfter(1 + Math.floor(random() * linesMax), delayMs);
  const database = clickhouse ?? databases.postgres;
  const begun = (): Promise<void> => sink.said(/begin/).catch(() => {});
  if (nth % shared.database === 0) await begun().then(() => database?.restart());
  if (nth % shared.nats === 0) await begun().then(() => nats.restart());
  if (nth % shared.frozen === 0) {
    await begun();
    database?.freeze();
    await delay(frozenMs);
    database?.thaw();
  }
  return await killed;
}

function withBrokenLine(frame: TestFrame): TestFrame {
  const { events, projectId, lane, messageId } = frame;
  const lines = events.map((event) => storedLine(event, projectId, lane));
  return { ...frame, text: [...lines, `broken ${messageId}`, ""].join("\n") };
}

async function untilWritten(connection: NatsConnection, url: string): Promise<void> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  const deadline = performance.now() + writtenMsMax;
  let last: Record<string, number> | undefined;
  while (last === undefined) {
    // Requests that were sent while nats-server returned may never be answered.
    last = await lastSequences(manager).catch((error: Error) => {
      if (performance.now() > deadline) throw error;
      return undefined;
    });
  }
  for (;;) {
    const there = await positionsAt(url).catch(() => undefined);
    if (Object.entries(last).every(([stream, sequence]) => there?.[stream] === sequence)) return;
    if (performance.now() > deadline)
      throw new Error(`not written: ${JSON.stringify({ there, last })}`);
    await delay(20);
  }
}

async function lastSequences(manager: JetStreamManager): Promise<Record<string, number>> {
  const last: Record<string, number> = {};
  for (const { stream } of await findStreams(manager, "penstock"))
    last[stream] = (await storedStream(manager, stream).state())?.lastSequence ?? 0;
  return last;
}

function tooOften(frames: readonly TestFrame[], found: readonly string[]): string[] {
  const sent = new Map<string, number>();
  for (const frame of frames) {
    for (const { uuid } of frame.events) {
      const event = `${frame.projectId} ${uuid}`;
      sent.set(event, (sent.get(event) ?? 0) + 1);
    }
  }
  for (const line of found) {
    const event = line.split(" ", 2).join(" ");
    const left = (sent.get(event) ?? 0) - 1;
    if (left < 0) return [`${event} is there more often than it was sent`];
    sent.set(event, left);
  }
  return [];
}

function apartAt(expected: readonly string[], found: readonly string[]): string[] {
  const at = expected.findIndex((line, index) => line !== found[index]);
  return [
    ...(found.length === expected.length ? [] : [`${found.length} of ${expected.length} events`]),
    ...(at < 0 ? [] : [`expected ${expected[at]}, found ${found[at]}`]),
  ];
}
