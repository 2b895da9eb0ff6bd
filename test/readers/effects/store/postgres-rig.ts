import type { TestPostgres } from "../../../kit/postgres.ts";
import { asked } from "../../../kit/postgres-rows.ts";

let databases = 0;

export async function newDatabase(server: TestPostgres): Promise<string> {
  const name = `test_${++databases}`;
  await asked(server.url, `CREATE DATABASE ${name}`);
  return server.url.replace(/postgres$/, name);
}
