import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { askedOfParquet } from "../../../kit/parquet-rows.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { eventsAt, eventsIn } from "../../../kit/sink-events.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { personsIn, personsOn } from "../persons/persons-kit.ts";
import { startSink } from "../sink-kit.ts";
import { newFolder, parquetTarget } from "./parquet-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

test("a Parquet sink with persons writes the person of each event", async () => {
  await makeStreams(connection);
  const frames = randomFrames(numbersFrom(1), { count: 40, linkedLanes: [] });
  await storeFrames(connection, frames);
  const { persons, wantedOf } = await personsOn(connection);
  const [folder, other] = [newFolder(), newFolder()];
  startSink(connection, parquetTarget(folder, { segmentAgeMsMax: 10 }), { persons });
  startSink(connection, parquetTarget(other, { segmentAgeMsMax: 10 }));
  const sql = "SELECT uuid, project_id, distinct_id, kind, person_profile, person_uuid FROM events";
  for (const one of [folder, other]) {
    const found = async () => [...new Set(await eventsAt(`parquet:${one}`).catch(() => []))];
    await expect.poll(found, { timeout: 30_000 }).toEqual(eventsIn(frames));
  }
  const rows = await askedOfParquet(folder, sql);
  expect(personsIn(rows)).toEqual(await wantedOf(rows));
  expect(new Set(rows.map(({ person_uuid: uuid }) => uuid)).size).toBeGreaterThan(10);
  const without = await askedOfParquet(other, sql);
  expect(new Set(without.map(({ person_uuid: uuid }) => uuid))).toEqual(new Set([null]));
});
