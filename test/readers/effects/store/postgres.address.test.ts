import { expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../../../src/platform/base/store-error.ts";
import { PostgresReader } from "../../../../src/readers/effects/store/postgres/reader.ts";
import { PostgresStore } from "../../../../src/readers/effects/store/postgres/store.ts";
import { createAuthority } from "../../../kit/certificates.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { newDatabase } from "./postgres-rig.ts";
import { all, commitOf, personRow, project, propertiesOf } from "./row-kit.ts";

const authority = await createAuthority();
const stranger = await createAuthority("another authority");
const server = await postgresForFile({ tls: await authority.server() });

async function faultOf(url: string): Promise<string | undefined> {
  let store: PostgresStore | undefined;
  try {
    store = new PostgresStore({ url });
    await store.open();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError);
    const { message } = error as Error;
    expect(message).not.toContain(server.password);
    return message;
  } finally {
    await store?.close();
  }
}

test("the PostgreSQL store reports why it cannot open", async () => {
  const { url, port, user } = server;
  const wrong = `postgres://${user}:wrong@127.0.0.1:${port}/postgres`;
  expect(await faultOf(wrong)).toContain("wrong user or password");
  expect(await faultOf(url.replace(/postgres$/, "nowhere"))).toContain(
    "the database does not exist",
  );
  await asked(url, "CREATE ROLE poor LOGIN PASSWORD 'pw'");
  expect(await faultOf(`postgres://poor:pw@127.0.0.1:${port}/postgres`)).toContain(
    "the user lacks a privilege: let it own the database",
  );
  expect(await faultOf(url.replace(`:${port}/`, ":1/"))).toMatch(
    /^cannot open the tables in PostgreSQL at 127\.0\.0\.1:1\/postgres: no server is listening/,
  );
});

test("the PostgreSQL store's error names the command that creates missing tables", async () => {
  const reader = new PostgresReader({ url: await newDatabase(server) });
  await expect(reader.totals()).rejects.toThrow("`penstock effects` creates them when it starts");
  await expect(all(reader.dump())).rejects.toThrow("the tables do not exist");
  await reader.close();
});

test.each([
  ["disable", "", undefined],
  ["prefer", "", undefined],
  ["require", "", undefined],
  ["require", "stranger", "certificate"],
  ["verify-full", "", "certificate"],
  ["verify-ca", "authority", undefined],
  ["verify-full", "authority", undefined],
  ["verify-full", "stranger", "certificate"],
])(
  "the PostgreSQL store handles sslmode=%s with the root certificate '%s'",
  async (mode, root, fault) => {
    const ca = { "": undefined, authority, stranger }[root]?.caFile;
    const url = `${await newDatabase(server)}?sslmode=${mode}`;
    const said = await faultOf(ca === undefined ? url : `${url}&sslrootcert=${ca}`);
    if (fault === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(fault);
  },
);

test("the PostgreSQL store uses TLS if the server supports it", async () => {
  const url = await newDatabase(server);
  const encrypted = `SELECT bool_and(ssl) AS ssl, count(*)::int AS n FROM pg_stat_ssl
    JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'penstock effects%'`;
  const store = new PostgresStore({ url });
  await store.open();
  await store.reader.totals();
  expect(await asked(url, encrypted)).toEqual([{ ssl: true, n: 2 }]);
  await store.close();
  await server.restart({ settings: { ssl: "off" } });
  const plain = new PostgresStore({ url });
  await plain.open();
  await plain.reader.totals();
  expect(await asked(url, encrypted)).toEqual([{ ssl: false, n: 2 }]);
  await plain.close();
  expect(await faultOf(`${url}?sslmode=require`)).toContain("does not support SSL");
  await server.restart();
});

test("the PostgreSQL tables have columns of time and JSON for queries", async () => {
  const url = await newDatabase(server);
  const store = new PostgresStore({ url });
  await store.open();
  const properties = propertiesOf({ plan: '"pro"', big: "12345678901234567890.10" });
  await store.commit(commitOf(0, { members: [personRow("ann", { properties })] }));
  await store.close();
  const found = await asked(
    url,
    `SELECT p.properties->>'plan' AS plan, p.created_at, i.distinct_id
     FROM penstock_effects.persons p
     JOIN penstock_effects.person_ids i ON i.project_id = p.project_id AND i.person_uuid = p.uuid
     WHERE p.project_id = '${project}' AND p.properties @> '{"plan":"pro"}'`,
  );
  const createdAt = new Date(Date.UTC(2026, 10, 22, 12, 0, 0, 1));
  expect(found).toEqual([{ plan: "pro", created_at: createdAt, distinct_id: "ann" }]);
  const odd = await asked(
    url,
    `SELECT attrelid::regclass::text AS "table", attname AS "column" FROM pg_attribute
     JOIN pg_class ON pg_class.oid = attrelid
     WHERE relnamespace = 'penstock_effects'::regnamespace AND relkind = 'r' AND attnum > 0
     AND atttypid = 'text'::regtype AND attcollation <> '"C"'::regcollation`,
  );
  expect(odd).toEqual([]);
});

test("the PostgreSQL store counts large properties of an older release's database", async () => {
  const url = await newDatabase(server);
  const before = new PostgresStore({ url });
  await before.open();
  const row = personRow("a");
  const members = [{ ...row, person: { ...row.person!, propertyBytes: 70_000 } }];
  await before.commit(commitOf(0, { members }));
  await before.close();
  for (const table of ["large_properties", "installation"])
    await asked(url, `DROP TABLE penstock_effects.${table}`);
  await asked(url, "ALTER TABLE penstock_effects.rejected DROP COLUMN distinct_id");
  await asked(url, "UPDATE penstock_effects.schema_version SET version = 1");
  const store = new PostgresStore({ url });
  onTestFinished(() => store.close());
  await store.open();
  expect(await store.largeProperties()).toEqual([{ projectId: project, bytes: 70_000 }]);
});

test("the PostgreSQL store rejects a database of a newer release", async () => {
  const url = await newDatabase(server);
  expect(await faultOf(url)).toBeUndefined();
  await asked(url, "UPDATE penstock_effects.schema_version SET version = 99");
  expect(await faultOf(url)).toContain("its tables have version 99");
});
