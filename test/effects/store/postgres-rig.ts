// New databases on a test's PostgreSQL, and questions to them past the store.

import { Client } from "pg";
import type { TestPostgres } from "../../../testkit/postgres.ts";

let databases = 0;

/** The URL of a new, empty database. */
export async function newDatabase(server: TestPostgres): Promise<string> {
  const name = `test_${++databases}`;
  await asked(server.url, `CREATE DATABASE ${name}`);
  return server.url.replace(/postgres$/, name);
}

/** The rows that a client of its own is answered. */
export async function asked(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
