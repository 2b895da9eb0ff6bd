import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { erasedSubjects } from "../../../src/platform/nats/rewritten.ts";
import { PostgresTarget } from "../../../src/readers/sinks/postgres/postgres-target.ts";
import { natsServerForFile, postgresForFile } from "../../kit/for-file.ts";
import { eventsAt, sinkSchema } from "../../kit/sink-events.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { freshStreams } from "../../readers/consumer/consumer-kit.ts";
import { newDatabase } from "../../readers/effects/store/postgres-rig.ts";
import { startSink } from "../../readers/sinks/sink-kit.ts";
import { addProjects, erased, eventOf, exported, frameOf, messagesIn } from "./erase-kit.ts";

const nats = await natsServerForFile();
const postgres = await postgresForFile();

test("an erasure reports messages that expired before it checked them", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const padding = "x".repeat(20_000);
  const hers = () => eventOf("person-to-erase", { properties: { padding } });
  const frames = Array.from({ length: 400 }, () => frameOf([hers(), eventOf("bob")]));
  await storeFrames(connection, frames);
  const manager = await jetstreamManager(connection);
  let purged: Promise<unknown> | undefined;
  const stepped = (): void => {
    purged ??= manager.streams.purge("PENSTOCK_LIVE_0");
  };
  const { err } = await erased({ natsUrl: nats.url, ids: ["person-to-erase"], stepped });
  await purged;
  expect(err).toMatch(/messages \d+ to \d+ left PENSTOCK_LIVE_0 while the stream was being read/);
});

test("an unrecorded rewritten copy stays until its replacement is stored", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  await storeFrames(connection, [frameOf(["ann", "bob", "eve"].map((id) => eventOf(id)))]);
  const natsUrl = nats.url;
  const stepped = (): void => {
    throw new Error("killed");
  };
  await expect(erased({ natsUrl, ids: ["ann"], stepped })).rejects.toThrow("killed");
  const stream = "PENSTOCK_LIVE_0";
  const manager = await jetstreamManager(connection);
  const { created } = await manager.streams.info(stream);
  const entry = JSON.stringify({ created, messages: [1, 99] });
  await jetstream(connection).publish(`${erasedSubjects(stream)}other.1`, entry);
  await manager.streams.deleteMessage(stream, 1);

  await erased({ natsUrl, ids: ["unknown"] });
  expect(idsIn((await messagesIn(connection, stream)).flatMap((one) => one.lines))).toEqual([
    "bob",
    "eve",
  ]);
  await erased({ natsUrl, ids: ["bob"] });
  expect(idsIn((await exported(natsUrl)).lines)).toEqual(["eve"]);
});

function idsIn(lines: readonly string[]): string[] {
  return lines.map((line) => (JSON.parse(line) as { distinct_id: string }).distinct_id);
}

test("readers receive an unrecorded rewritten copy after the next erasure", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  await storeFrames(connection, [
    frameOf(["ann", "bob", "eve"].map((id) => eventOf(id))),
    frameOf([eventOf("zoe")]),
  ]);
  const natsUrl = nats.url;
  const stepped = (step: string): void => {
    if (step === "stored") throw new Error("killed");
  };
  await expect(erased({ natsUrl, ids: ["ann"], stepped })).rejects.toThrow("killed");
  const manager = await jetstreamManager(connection);
  await manager.streams.deleteMessage("PENSTOCK_LIVE_0", 1);
  await expect(erased({ natsUrl, ids: ["bob"], stepped })).rejects.toThrow("killed");

  await erased({ natsUrl, ids: ["unknown"] });
  expect(idsIn((await exported(natsUrl)).lines).sort()).toEqual(["bob", "eve", "zoe"]);
  const url = await newDatabase(postgres);
  startSink(connection, new PostgresTarget({ url, schema: sinkSchema }));
  await expect.poll(() => eventsAt(url), { timeout: 20_000 }).toHaveLength(3);
});

test("a sink and an export report an expired rewritten copy and continue", async () => {
  const connection = await freshStreams(nats);
  await addProjects(connection);
  const hers = () => eventOf("person-to-erase");
  const some = ["bob", "eve", "zoe"].map((id) => eventOf(id));
  const frames = some.map((event) => frameOf([hers(), event]));
  await storeFrames(connection, [frameOf([eventOf("ann")]), ...frames]);
  await erased({ natsUrl: nats.url, ids: ["person-to-erase"] });
  await storeFrames(connection, [frameOf([eventOf("joe")])]);
  const manager = await jetstreamManager(connection);
  expect((await exported(nats.url)).lines.length).toBe(5);
  expect((await exported(nats.url)).err).not.toContain("missing");

  const stream = "PENSTOCK_LIVE_0";
  await manager.streams.deleteMessage(stream, 5);
  const { lines, err: said } = await exported(nats.url);
  expect(lines.length).toBe(4);
  expect(said).toContain(`1 replacements of erased messages have left ${stream}`);
  const warned: object[] = [];
  const log = { info() {}, warn: (fields: object) => void warned.push(fields), error() {} };
  startSink(connection, new PostgresTarget({ url: postgres.url, schema: sinkSchema }), { log });
  await expect.poll(() => eventsAt(postgres.url), { timeout: 20_000 }).toHaveLength(4);
  expect(warned).toContainEqual({ stream, from: 2, to: 5, missed: 1 });
});
