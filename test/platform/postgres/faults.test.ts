import { readFileSync, writeFileSync } from "node:fs";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readAddress } from "../../../src/platform/postgres/address.ts";
import { connect } from "../../../src/platform/postgres/connect.ts";
import { storeErrorOf } from "../../../src/platform/postgres/faults.ts";
import { PostgresTarget } from "../../../src/readers/sinks/postgres/postgres-target.ts";
import { createAuthority } from "../../kit/certificates.ts";
import { postgresForFile } from "../../kit/for-file.ts";
import { freePort } from "../../kit/free-port.ts";

const { certFile, keyFile } = await (await createAuthority()).server();
const other = await createAuthority("another authority");
const postgres = await postgresForFile({ tls: { certFile, keyFile } });
const plain = await postgresForFile();
const admin = new Client({ connectionString: postgres.url });
await admin.connect();
afterAll(() => admin.end());

beforeAll(async () => {
  for (const role of ["shut", "poor", "slow", "plainly"])
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'word'`);
  await admin.query("ALTER ROLE shut NOLOGIN; ALTER ROLE slow CONNECTION LIMIT 0");
  for (const name of ["guarded", "crowded", "closed", "frozen"])
    await admin.query(`CREATE DATABASE ${name} OWNER ${postgres.user}`);
  await admin.query("REVOKE CONNECT ON DATABASE guarded FROM PUBLIC");
  await admin.query("ALTER DATABASE crowded CONNECTION LIMIT 0");
  await admin.query("ALTER DATABASE closed ALLOW_CONNECTIONS false");
  await admin.query("ALTER DATABASE frozen SET default_transaction_read_only = on");
  const [row] = (await admin.query("SHOW hba_file")).rows as { hba_file: string }[];
  const own = readFileSync(row!.hba_file, "utf8");
  const first = "hostssl all plainly all scram-sha-256\nhost all plainly all reject\n";
  writeFileSync(row!.hba_file, `${first}${own}`);
  await admin.query("SELECT pg_reload_conf()");
});

function urlOf({ user = "poor", word = "word", database = "postgres", more = "" }): string {
  return `postgres://${user}${word === "" ? "" : `:${word}`}@127.0.0.1:${postgres.port}/${database}${more}`;
}

async function faultOf(url: string): Promise<string> {
  const address = readAddress(url);
  const { shown } = address;
  try {
    await (await connect(address, { name: "test", statementMsMax: 1_000, schema: "any" })).end();
    return "";
  } catch (error) {
    return storeErrorOf(error, { doing: "open", shown, hints: {} }).message;
  }
}

test.each<[string, Parameters<typeof urlOf>[0], string]>([
  ["a wrong password", { word: "wrong" }, "wrong user or password"],
  ["no password", { word: "" }, "the server requires a password, but the URL has none"],
  ["a role that may not log in", { user: "shut" }, "or may not log in"],
  ["a database without the right to connect", { database: "guarded" }, "GRANT CONNECT ON DATABASE"],
  ["a role with no connection left", { user: "slow" }, "the role has reached its connection limit"],
  [
    "a database with no connection left",
    { database: "crowded" },
    "the database has reached its connection limit",
  ],
  [
    "a database that accepts no connections",
    { database: "closed" },
    "the database accepts no connections",
  ],
  ["a database that does not exist", { database: "nowhere" }, "the database does not exist"],
  [
    "a user that may only connect with TLS",
    { user: "plainly", more: "?sslmode=disable" },
    "pg_hba.conf",
  ],
  [
    "a certificate that is not trusted",
    { more: `?sslmode=verify-full&sslrootcert=${encodeURIComponent(other.caFile)}` },
    "the server's certificate is not trusted",
  ],
])("the PostgreSQL error for %s states the cause", async (_, parts, said) => {
  const fault = await faultOf(urlOf(parts));
  expect(fault).toMatch(/^cannot open in PostgreSQL at 127\.0\.0\.1:/);
  expect(fault).toContain(said);
  if (said !== "pg_hba.conf") expect(fault).not.toContain("pg_hba.conf");
});

test("the PostgreSQL error names a server that is missing or lacks TLS", async () => {
  expect(await faultOf(`${plain.url}?sslmode=require`)).toContain(
    "the server does not support TLS",
  );
  const nowhere = `postgres://u:p@127.0.0.1:${await freePort()}/d`;
  expect(await faultOf(nowhere)).toContain("no server is listening");
  expect(await faultOf("postgres://u:p@no-such-host.invalid/d")).toMatch(
    /unknown host|cannot be resolved now/,
  );
  expect(await faultOf("postgres://u:p@localhost/d?host=/no/such")).toContain(
    "the socket does not exist",
  );
});

test("the PostgreSQL error names the missing permissions of a sink", async () => {
  const openFault = async (url: string): Promise<string> => {
    const target = new PostgresTarget({ url, schema: "penstock" });
    const fault = await target.open().then(
      () => "",
      ({ message }: Error) => message,
    );
    await target.close();
    return fault;
  };
  expect(await openFault(urlOf({}))).toContain("the user lacks a privilege: let it own the schema");
  const frozen = urlOf({ user: postgres.user, word: postgres.password, database: "frozen" });
  expect(await openFault(frozen)).toContain("default_transaction_read_only");
  const guarded = urlOf({ database: "guarded" });
  expect(await openFault(guarded)).toContain("GRANT CONNECT ON DATABASE");
});
