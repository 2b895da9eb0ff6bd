import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { PostgresReader } from "../../../../src/readers/effects/store/postgres/reader.ts";
import { PostgresStore } from "../../../../src/readers/effects/store/postgres/store.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { newDatabase } from "./postgres-rig.ts";
import { commitOf, personRow, project } from "./row-kit.ts";

const server = await postgresForFile();

function storeOf(url: string): PostgresStore {
  const store = new PostgresStore({ url });
  onTestFinished(() => store.close());
  return store;
}

async function linesOf(reader: Pick<PostgresReader, "dump">): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of reader.dump()) lines.push(line);
  return lines;
}

const odd = {
  bytea_output: "escape",
  datestyle: "German, DMY",
  timezone: "Asia/Kathmandu",
  extra_float_digits: "-10",
  standard_conforming_strings: "off",
  array_nulls: "off",
  transform_null_equals: "on",
  search_path: "nowhere",
  default_transaction_isolation: "serializable",
};
const registers = Uint8Array.from({ length: 256 }, (_, index) => index);
const active = { projectId: project, day: "2026-11-22", registers, estimate: 1 / 3 };
const commit = commitOf(0, { members: [personRow("ann")], activeIds: [active] });

test("the PostgreSQL store does not depend on settings of the database", async () => {
  const [url, plainUrl] = [await newDatabase(server), await newDatabase(server)];
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of Object.entries(odd))
    await asked(server.url, `ALTER DATABASE ${name} SET ${setting} = '${value}'`);
  const [store, plain] = [storeOf(url), storeOf(plainUrl)];
  for (const one of [store, plain]) {
    await one.open();
    await one.commit(commit);
  }
  expect(await store.activeIds([active])).toEqual([active]);
  expect(await store.members(project, ["ann"])).toEqual([personRow("ann")]);
  expect(await linesOf(store.reader)).toEqual(await linesOf(plain.reader));
});

test("the PostgreSQL store rejects a database that is not in UTF-8", async () => {
  await asked(
    server.url,
    "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
  );
  const url = server.url.replace(/postgres$/, "latin");
  await expect(storeOf(url).open()).rejects.toThrow(
    "the database is in LATIN1, but must be in UTF8",
  );
  expect(await asked(url, "SELECT to_regnamespace('penstock_effects') AS made")).toEqual([
    { made: null },
  ]);
});

test("a dump of PostgreSQL waits for a slow reader", async () => {
  const url = await newDatabase(server);
  const store = storeOf(url);
  await store.commit(commit);
  const longStatementMsMax = 300;
  const reader = new PostgresReader({ url, longStatementMsMax });
  onTestFinished(() => reader.close());
  const found: string[] = [];
  for await (const line of reader.dump()) {
    if (found.length === 0) await delay(2 * longStatementMsMax);
    found.push(line);
  }
  expect(found).toEqual(await linesOf(store.reader));
});
