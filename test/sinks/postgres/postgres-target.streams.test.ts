// What a sink does when a stream is not the one it was, or has lost what was not written yet.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, test } from "vitest";
import { PostgresTarget } from "../../../src/sinks/postgres/postgres-target.ts";
import { natsServerForFile, postgresForFile } from "../../../testkit/for-file.ts";
import { asked } from "../../../testkit/postgres-rows.ts";
import { numbersFrom, randomFrames } from "../../../testkit/random-events.ts";
import { eventsAt, eventsIn, sinkSchema as schema } from "../../../testkit/sink-events.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../../testkit/stored-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";
import { positionTests } from "../suite-positions.ts";

const nats = await natsServerForFile();
const postgres = await postgresForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const manager = await jetstreamManager(connection);
const live = "PENSTOCK_LIVE_0";
const within = { timeout: 30_000 };

beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
});

positionTests(async () => {
  const url = await newDatabase(postgres);
  return () => new PostgresTarget({ url, schema });
});

/** Frames of the live lane, stored. */
async function stored(seed: number): Promise<TestFrame[]> {
  const frames = randomFrames(numbersFrom(seed), { count: 20 });
  const own = frames.filter(({ lane }) => lane === "live");
  await storeFrames(connection, own);
  return own;
}

async function kindsAt(url: string): Promise<unknown[]> {
  return (await asked(url, `SELECT kind FROM ${schema}.incidents`)).map(({ kind }) => kind);
}

test("a stream that is made anew is read from its beginning, and an incident says so", async () => {
  const url = await newDatabase(postgres);
  startSink(connection, new PostgresTarget({ url, schema }));
  const before = await stored(1);
  await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(before));
  const [consumer] = await manager.consumers.list(live).next();
  expect(consumer?.name).toMatch(/^penstock_sink_/);
  await manager.streams.delete(live);
  await makeStreams(connection);
  const after = await stored(2);
  await expect.poll(() => eventsAt(url), within).toEqual(eventsIn([...before, ...after]));
  expect(await kindsAt(url)).toEqual(["stream_made_anew"]);
});

test("events that left their stream unread stop it until it is told to go on behind them", async () => {
  const url = await newDatabase(postgres);
  const target = new PostgresTarget({ url, schema });
  const first = startSink(connection, target);
  const before = await stored(3);
  await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(before));
  await first.writer.close();
  await target.close();
  await stored(4);
  await manager.streams.purge(live);
  const after = await stored(5);

  // A second start says the same of the same incident.
  for (const _ of [1, 2]) {
    const stopped = new PostgresTarget({ url, schema });
    const sink = startSink(connection, stopped);
    const reasons = () => sink.writer.status(Date.now()).reasons.join();
    const wayOut = /left the stream before .*penstock sink.*--accept-expired/;
    await expect.poll(reasons, within).toMatch(wayOut);
    await expect.poll(() => sink.counts.commits, within).toBeGreaterThan(0);
    expect(await kindsAt(url)).toEqual(["expired_unread"]);
    expect(await eventsAt(url)).toEqual(eventsIn(before));
    await sink.writer.close();
    await stopped.close();
  }

  startSink(connection, new PostgresTarget({ url, schema }), { acceptExpired: true });
  await expect.poll(() => eventsAt(url), within).toEqual(eventsIn([...before, ...after]));
  expect(await kindsAt(url)).toEqual(["expired_unread", "expired_unread"]);
});
