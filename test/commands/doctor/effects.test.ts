import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { SqliteStore } from "../../../src/readers/effects/store/sqlite/store.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import {
  commitOf,
  personRow,
  positionRow,
  rejectedRow,
} from "../../readers/effects/store/row-kit.ts";
import { doctorAt, expectOne, serverWith } from "./doctor-kit.ts";

const noServer = { url: "nats://127.0.0.1:1" };

test("doctor accepts a missing effects database", async () => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const run = await doctorAt(noServer, { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  expect(expectOne(run, "effects", "ok").found).toContain("no database yet");
  expect(existsSync(file)).toBe(false);
});

test("doctor reports the streams and rejections of an effects database", async () => {
  const server = await serverWith({});
  const connection = await connect({ servers: server.url });
  onTestFinished(() => connection.close());
  const manager = await jetstreamManager(connection);
  const made = { name: "PENSTOCK_LIVE_0", subjects: ["penstock.live.0.>"] };
  const { created } = await manager.streams.add(made);
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.commit(
    commitOf(0, {
      positions: [{ ...positionRow(3), created }],
      members: [personRow("ada")],
      rejected: [rejectedRow(1)],
      incidents: [
        {
          stream: "PENSTOCK_LIVE_0",
          kind: "tail_lost",
          epoch: 2,
          sequence: 3,
          messages: 2,
          detail: "2 messages are gone",
        },
      ],
    }),
  );
  await store.close();
  const run = await doctorAt(server, { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  expect(expectOne(run, "effects", "ok").found).toBe(`${file}: 1 person, 0 groups`);
  expect(expectOne(run, "effects lag", "ok").found).toBe("all events are applied");
  expect(expectOne(run, "effects loss", "warn").found).toBe("1 incident with streams");
  expect(expectOne(run, "rejected", "warn").found).toBe("1 part of events could not be applied");
});

test("doctor warns if the effects database is from another NATS server", async () => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.commit(commitOf(0, { positions: [positionRow(3)], members: [personRow("ada")] }));
  await store.close();
  const run = await doctorAt(await serverWith({}), { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  const { found } = expectOne(run, "effects", "warn");
  expect(found).toContain("built from other streams (of another NATS");
  expect(found).toContain("PENSTOCK_LIVE_0");
  expect(run.of("effects lag")).toEqual([]);
});

test("doctor warns that it cannot check the lag without NATS", async () => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.close();
  const run = await doctorAt(noServer, { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  expectOne(run, "effects", "ok");
  expect(expectOne(run, "effects lag", "warn").found).toMatch(
    /^unknown: cannot connect to NATS at nats:\/\/127\.0\.0\.1:1: /,
  );
});

test("doctor fails if the effects database has a different subject prefix", async () => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.bindTo("staging");
  await store.close();
  const run = await doctorAt(await serverWith({}), { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  expect(expectOne(run, "effects", "fail").found).toContain("PENSTOCK_SUBJECT_PREFIX=staging");
  expect(run.of("effects lag")).toEqual([]);
});

test.each([
  ["an older release", 3, "warn", "the first start of `penstock effects` of this release"],
  ["a newer release", 99, "fail", "use that release or a newer one"],
] as const)("doctor reports an effects database of %s", async (writer, version, level, remedy) => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.close();
  const db = new DatabaseSync(file);
  db.exec(`UPDATE schema_version SET version = ${version}`);
  db.close();
  const run = await doctorAt(noServer, { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  const { found, fix } = expectOne(run, "effects", level);
  expect(found).toBe(`${writer} wrote ${file}`);
  expect(fix).toContain(remedy);
});

test("doctor fails if the effects database is invalid or unavailable", async () => {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  writeFileSync(file, "no database at all, but long enough to be looked at as one".repeat(100));
  const broken = await doctorAt(noServer, { PENSTOCK_EFFECTS_URL: `sqlite:${file}` });
  expectOne(broken, "effects", "fail");
  const away = await doctorAt(noServer, {
    PENSTOCK_EFFECTS_URL: "postgres://me:hunter2@127.0.0.1:1/effects",
  });
  expectOne(away, "effects", "fail");
  expect(away.out + away.err).not.toContain("hunter2");
});
