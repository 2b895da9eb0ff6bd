// Messages that an erasure has rewritten stay in the stream longer than their former neighbours.

import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { StoreError } from "../../../src/platform/base/store-error.ts";
import { appliedOf, rebuild } from "../../../src/readers/effects/writer/rebuild.ts";
import { PostgresTarget } from "../../../src/readers/sinks/postgres/postgres-target.ts";
import type { SinkBatch, WriteOutcome } from "../../../src/readers/sinks/sink-target.ts";
import type { SinkWriterOptions } from "../../../src/readers/sinks/sink-writer.ts";
import { dumpOf, untilApplied } from "../../kit/effects-dumps.ts";
import { postgresForFile } from "../../kit/for-file.ts";
import { asked } from "../../kit/postgres-rows.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { describeWriter } from "../../readers/effects/writer/writer-kit.ts";
import { startSink } from "../../readers/sinks/sink-kit.ts";
import { addProjects, erased, eventOf, frameOf } from "./erase-kit.ts";

const postgres = await postgresForFile();
const stream = "PENSTOCK_LIVE_0";
const ids = ["person-to-erase"];
const within = { timeout: 20_000 };
const single = { eventsMax: 1, bytesMax: 1_048_576, ageMsMax: 20 };

const frameWith = (...names: string[]) =>
  frameOf([...names.map((id) => eventOf(id, { set: { plan: id } })), eventOf(ids[0]!)]);

await describeWriter("SQLite", ({ connection, nats, ...rig }) => {
  const natsUrl = nats.url;

  test("a sink that starts after an expiry reads rewritten messages", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("ann")]), frameWith("bob")]);
    await storeFrames(connection, [frameOf([eventOf("cid")]), frameWith(), frameWith("joe")]);
    await erased({ natsUrl, ids });
    await expireBefore(connection, 6);
    const schema = "late";
    await untilWritten(schema, ["bob", "joe"], connection);
    await storeFrames(connection, [frameOf([eventOf("zoe")])]);
    await untilWritten(schema, ["bob", "joe", "zoe"], connection);
    expect(await incidentsIn(schema)).toEqual([["begun_late", 3]]);
  });

  test("a sink that continues with --accept-expired reads rewritten messages", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("ann")])]);
    const schema = "behind";
    await untilWritten(schema, ["ann"], connection);
    await storeFrames(connection, [frameWith("bob"), frameOf([eventOf("cid")]), frameWith("joe")]);
    await erased({ natsUrl, ids });
    await expireBefore(connection, 5);
    await untilWritten(schema, ["ann", "bob", "joe"], connection, { acceptExpired: true });
    await storeFrames(connection, [frameOf([eventOf("zoe")])]);
    await untilWritten(schema, ["ann", "bob", "joe", "zoe"], connection);
    expect((await incidentsIn(schema)).map(([kind]) => kind)).toEqual(["expired_unread"]);
  });

  test.each(["before", "behind"] as const)(
    "a sink whose commits fail (%s the write) reads rewritten messages",
    async (when) => {
      await addProjects(connection);
      for (const name of ["ann", "bob", "cid"])
        await storeFrames(connection, [frameWith(name), frameOf([eventOf("gone")])]);
      await erased({ natsUrl, ids });
      await expireBefore(connection, 7);
      await storeFrames(connection, [frameOf([eventOf("zoe")])]);
      const schema = `breaks_${when}`;
      const names = ["ann", "bob", "cid", "zoe"];
      await untilWritten(schema, names, connection, { limits: single, breaks: when });
      expect(await incidentsIn(schema)).toEqual([["begun_late", 6]]);
      // If more unread messages expire later, the sink needs --accept-expired.
      await storeFrames(connection, [frameOf([eventOf("eve")]), frameOf([eventOf("joe")])]);
      const { state } = await (await jetstreamManager(connection)).streams.info(stream);
      await expireBefore(connection, state.last_seq);
      await untilWritten(schema, [...names, "joe"].sort(), connection, { acceptExpired: true });
      expect(await incidentsIn(schema)).toEqual([
        ["begun_late", 6],
        ["expired_unread", 1],
      ]);
    },
  );

  test("a sink that ran once with --accept-expired reads rewritten messages", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("ann")])]);
    const schema = "once";
    await untilWritten(schema, ["ann"], connection);
    for (const name of ["bob", "cid", "dan"])
      await storeFrames(connection, [frameOf([eventOf("gone")]), frameWith(name)]);
    await erased({ natsUrl, ids });
    await expireBefore(connection, 8);
    await storeFrames(connection, [frameOf([eventOf("zoe")])]);
    // The incident is reported until the sink has written one of the replacements.
    const withExpired = { acceptExpired: true, limits: single, breaks: "after one" } as const;
    await untilWritten(schema, ["ann", "bob"], connection, withExpired);
    await untilWritten(schema, ["ann", "bob", "cid", "dan", "zoe"], connection);
    expect((await incidentsIn(schema)).map(([kind]) => kind)).toEqual(["expired_unread"]);
  });

  test("a rebuild reads all messages, including rewritten messages", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("ann")]), frameWith("bob")]);
    await storeFrames(connection, [frameOf([eventOf("cid")]), frameWith("joe")]);
    await erased({ natsUrl, ids });
    const place = await rig.databases.newDatabase();
    const store = await rig.openStore(place);
    const writer = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    await writer.close();
    await expireBefore(connection, 5);
    const applied = await appliedOf(store.reader);
    const into = await rig.openStore();
    const options = { connection, prefix: "penstock", applied, into, acceptMissing: true };
    expect(await rebuild(options)).toEqual({ messages: 4, missing: 2 });
    const people = (await dumpOf(into.reader)).join();
    expect(["ann", "bob", "cid", "joe"].filter((one) => people.includes(`"${one}"`))).toEqual([
      "bob",
      "joe",
    ]);
  });
});

async function expireBefore(connection: NatsConnection, seq: number): Promise<void> {
  await (await jetstreamManager(connection)).streams.purge(stream, { seq });
}

interface SinkSettings extends Partial<SinkWriterOptions> {
  readonly breaks?: BreakingTarget["breaks"];
}

class BreakingTarget extends PostgresTarget {
  breaks: "before" | "behind" | "after one" | undefined;
  #isNext = true;
  #events = 0;

  override async write(batch: SinkBatch): Promise<WriteOutcome> {
    const isNow = this.breaks === "after one" ? this.#events > 0 : this.#isNext;
    this.#isNext = !this.#isNext;
    if (isNow && this.breaks !== undefined && this.breaks !== "behind")
      throw new StoreError("away");
    const outcome = await super.write(batch);
    this.#events += outcome.written;
    if (isNow && this.breaks === "behind") throw new StoreError("away");
    return outcome;
  }
}

async function untilWritten(
  schema: string,
  names: readonly string[],
  connection: NatsConnection,
  { breaks, ...settings }: SinkSettings = {},
): Promise<void> {
  const target = new BreakingTarget({ url: postgres.url, schema });
  target.breaks = breaks;
  const { writer } = startSink(connection, target, settings);
  const sql = `SELECT distinct_id FROM ${schema}.events ORDER BY distinct_id`;
  const written = async () =>
    (await asked(postgres.url, sql).catch(() => [])).map(({ distinct_id: id }) => id);
  await expect.poll(written, within).toEqual(names);
  await writer.close();
  await target.close();
}

async function incidentsIn(schema: string): Promise<unknown[][]> {
  const rows = await asked(postgres.url, `SELECT kind, messages FROM ${schema}.incidents`);
  return rows.map(({ kind, messages }) => [kind, Number(messages)]);
}
