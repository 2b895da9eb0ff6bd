import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import type { StorePlace } from "../../../../src/readers/effects/store/open.ts";
import { EventPersons } from "../../../../src/readers/sinks/persons/event-persons.ts";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { addProjects, erased, eventOf, frameOf } from "../../../commands/erase/erase-kit.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { silent } from "../../../kit/processes.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { eventsAt, eventsIn, sinkSchema as schema } from "../../../kit/sink-events.ts";
import { sinkRecord } from "../../../kit/sink-record.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { describeWriter, type WriterRig } from "../../effects/writer/writer-kit.ts";
import { startSink } from "../sink-kit.ts";

const postgres = await postgresForFile();
const within = { timeout: 30_000 };

const kinds = ["SQLite", "PostgreSQL"] as const;
for (const kind of kinds) await describeWriter(kind, tests);

function tests(rig: WriterRig): void {
  const { connection, databases } = rig;

  async function startEffects(place: StorePlace) {
    const store = await rig.openStore(place);
    return { store, writer: rig.startWriter({ store }) };
  }

  async function startWithPersons(url: string, place: StorePlace, otherStreamMsMax = 60_000) {
    const source = await rig.openReader(place);
    const warned: string[] = [];
    const log = {
      ...silent,
      warn: (fields: object) => void warned.push(String((fields as { reason?: string }).reason)),
    };
    const persons = new EventPersons({ source, log, otherStreamMsMax, reportAfterMs: 0 });
    const target = new PostgresTarget({ url, schema, withPerson: true });
    return { ...startSink(connection, target, { persons, log }), persons, target, warned };
  }

  async function personsAt(url: string, place: StorePlace) {
    const rows = await asked(
      url,
      `SELECT project_id, distinct_id, person_profile, kind, person_uuid FROM ${schema}.events`,
    );
    const reader = await rig.openReader(place);
    const ids = rows.map((row) => ({
      projectId: row["project_id"] as string,
      distinctIds: [row["distinct_id"] as string],
    }));
    const uuids = await reader.personUuids(ids);
    return {
      written: rows.map(({ person_uuid }) => person_uuid),
      wanted: rows.map(({ person_profile, kind }, at) =>
        person_profile === true && kind !== "group_identify" ? uuids[at] : null,
      ),
    };
  }

  async function untilApplied(place: StorePlace, sequences: readonly number[]): Promise<void> {
    const reader = await rig.openReader(place);
    const stream = "PENSTOCK_LIVE_0";
    const sequence = Math.max(...sequences);
    const there = async () => (await reader.reached([{ stream, sequence }]))[0]?.sequence;
    await expect.poll(there, within).toBe(sequence);
  }

  test("a sink with persons writes the uuid of each event's person", async () => {
    const [url, place] = [await newDatabase(postgres), await databases.newDatabase()];
    const frames = randomFrames(numbersFrom(1), { count: 80 });
    const live = frames.filter(({ lane }) => lane === "live");
    await storeFrames(
      connection,
      frames.filter((frame) => !live.includes(frame)),
    );
    const sequences = await storeFrames(connection, live);
    await startEffects(place);
    await untilApplied(place, sequences);
    const { persons } = await startWithPersons(url, place);
    await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(frames));
    const { written, wanted } = await personsAt(url, place);
    expect(written).toEqual(wanted);
    expect(written.filter((uuid) => uuid === null).length).toBeGreaterThan(10);
    expect(new Set(written).size).toBeGreaterThan(10);
    expect(persons.waitSeconds).toBe(0);
  });

  test("a sink with persons writes nothing while the effects lag or are down", async () => {
    const [url, place] = [await newDatabase(postgres), await databases.newDatabase()];
    const random = numbersFrom(2);
    const first = randomFrames(random, { count: 20, linkedLanes: [] });
    await storeFrames(connection, first);
    const sink = await startWithPersons(url, place);
    const reasons = () => sink.writer.status(Date.now()).reasons.join();
    await expect
      .poll(reasons, within)
      .toMatch(/^waiting until `penstock effects` has applied .*: cannot read /);
    const effects = await startEffects(place);
    await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(first));
    await expect.poll(reasons, within).toBe("");
    await effects.writer.close();
    await effects.store.close();
    const second = randomFrames(random, { count: 20, linkedLanes: [] });
    await storeFrames(connection, second);
    await expect.poll(reasons, within).toMatch(/the effects are at message \d+ of PENSTOCK_/);
    expect(sink.persons.waitSeconds).toBeGreaterThan(0);
    expect(await eventsAt(url)).toEqual(eventsIn(first));
    await startEffects(place);
    const all = eventsIn([...first, ...second]);
    await expect.poll(() => eventsAt(url), within).toEqual(all);
    const { written, wanted } = await personsAt(url, place);
    expect(written).toEqual(wanted);
  });

  test("a sink with persons can be stopped while it waits", async () => {
    const [url, place] = [await newDatabase(postgres), await databases.newDatabase()];
    const frames = randomFrames(numbersFrom(3), { count: 20 });
    await storeFrames(connection, frames);
    const sink = await startWithPersons(url, place);
    await expect.poll(() => sink.persons.waitSeconds, within).toBeGreaterThan(0);
    await sink.writer.close();
    await sink.target.close();
    expect(await asked(url, `SELECT uuid FROM ${schema}.events`)).toEqual([]);
    await startEffects(place);
    await startWithPersons(url, place);
    await expect.poll(() => eventsAt(url), within).toEqual(eventsIn(frames));
  });

  test("a sink with persons is not blocked by an erased event", async () => {
    const [url, place] = [await newDatabase(postgres), await databases.newDatabase()];
    await addProjects(connection);
    const frame = frameOf([eventOf("bob"), eventOf("person-to-erase")]);
    const sequences = await storeFrames(connection, [frame]);
    await startEffects(place);
    await untilApplied(place, sequences);
    await erased({ natsUrl: rig.nats.url, ids: ["person-to-erase"], place });
    await startWithPersons(url, place);
    const rows = () => asked(url, `SELECT distinct_id, person_uuid FROM ${schema}.events`);
    const bob = { distinct_id: "bob", person_uuid: personUuid("shop", "bob") };
    await expect.poll(() => rows().catch(() => []), within).toEqual([bob]);
  });

  test("a sink with persons waits until the effects read a recreated stream", async () => {
    const [url, place] = [await newDatabase(postgres), await databases.newDatabase()];
    const random = numbersFrom(4);
    const options = { count: 20, linkedLanes: [] };
    const before = randomFrames(random, options);
    await storeFrames(connection, before);
    const effects = await startEffects(place);
    const sink = await startWithPersons(url, place, 100);
    await expect.poll(() => eventsAt(url).catch(() => []), within).toEqual(eventsIn(before));
    await effects.writer.close();
    await effects.store.close();
    const manager = await jetstreamManager(connection);
    for (const name of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"])
      await manager.streams.delete(name);
    await makeStreams(connection);
    const after = randomFrames(random, { ...options, count: 5 });
    await storeFrames(connection, after);
    const said = () => sink.warned.join();
    await expect.poll(said, within).toMatch(/was created at .*: checking the streams again/);
    expect(await eventsAt(url)).toEqual(eventsIn(before));
    await startEffects(place);
    await expect.poll(() => eventsAt(url), within).toEqual(eventsIn([...before, ...after]));
    const { written, wanted } = await personsAt(url, place);
    expect(written).toEqual(wanted);
  });
}

test("a sink with persons adds the column person_uuid to a table", async () => {
  const url = await newDatabase(postgres);
  const batchOf = (sequence: number) => ({
    before: new Map(
      sequence === 1 ? [] : [["PENSTOCK_LIVE_0", { epoch: 1, sequence: sequence - 1 }]],
    ),
    positions: [
      {
        stream: "PENSTOCK_LIVE_0",
        lane: "live" as const,
        partition: 0,
        epoch: 1,
        created: "now",
        sequence,
        trail: [],
      },
    ],
    rejected: [],
    incidents: [],
  });
  const eventOf = (n: number, personUuid: string) =>
    sinkRecord({
      sequence: n,
      storedAtMs: Date.UTC(2026, 10, n),
      personUuid,
      uuid: `00000000-0000-4000-8000-00000000000${n}`,
    });
  const uuid = "c57c0f36-d418-5153-8f2c-7ed22cf511ee";
  const steps = [
    { withPerson: false, personUuid: uuid, written: null },
    { withPerson: true, personUuid: uuid, written: uuid },
    { withPerson: true, personUuid: "", written: null },
    { withPerson: false, personUuid: uuid, written: null },
  ];
  for (const [at, { withPerson, personUuid }] of steps.entries()) {
    const target = new PostgresTarget({ url, schema, withPerson });
    await target.open();
    await target.write({ ...batchOf(at + 1), events: [eventOf(at + 1, personUuid)] });
    await target.close();
  }
  const rows = await asked(url, `SELECT person_uuid FROM ${schema}.events ORDER BY stored_at`);
  expect(rows.map(({ person_uuid }) => person_uuid)).toEqual(steps.map(({ written }) => written));
});
