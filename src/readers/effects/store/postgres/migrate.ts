import type { ClientBase } from "pg";
import { StoreError } from "../../../../platform/base/store-error.ts";
import { postgres, schemaFrom, schemaVersion, versionError } from "../rows/schema.ts";

export const schemaName = "penstock_effects";
export const rebuiltSchemaName = "penstock_effects_rebuilt";

/**
 * Creates or upgrades the tables in one transaction. The caller must hold the writer's lock.
 * Rejects with a StoreError if a newer release has created the tables.
 */
export async function migrate(
  client: ClientBase,
  shown: string,
  schema = schemaName,
): Promise<void> {
  const version = await versionOf(client, schema);
  if (version === schemaVersion) return;
  if (version > schemaVersion) throw otherVersion(version, shown);
  await client.query("BEGIN");
  try {
    if (!(await hasSchema(client, schema))) await client.query(`CREATE SCHEMA ${schema}`);
    await client.query("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)");
    for (const sql of schemaFrom(version, postgres)) await client.query(sql);
    await client.query("DELETE FROM schema_version");
    await client.query("INSERT INTO schema_version VALUES ($1)", [schemaVersion]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** Rejects with a StoreError if this release cannot read the tables. */
export async function requireVersion(client: ClientBase, shown: string): Promise<void> {
  const version = await versionOf(client);
  if (version !== schemaVersion) throw otherVersion(version, shown);
}

async function versionOf(client: ClientBase, schema = schemaName): Promise<number> {
  const table = await client.query({
    text: "SELECT to_regclass($1) IS NOT NULL",
    values: [`${schema}.schema_version`],
    rowMode: "array",
  });
  if (table.rows[0]?.[0] !== 1) return 0;
  const { rows } = await client.query<[number | null]>({
    text: "SELECT max(version) FROM schema_version",
    rowMode: "array",
  });
  return rows[0]?.[0] ?? 0;
}

export async function hasSchema(client: ClientBase, schema: string): Promise<boolean> {
  const { rows } = await client.query<[number]>({
    text: "SELECT to_regnamespace($1) IS NOT NULL",
    values: [schema],
    rowMode: "array",
  });
  return rows[0]?.[0] === 1;
}

function otherVersion(version: number, shown: string): StoreError {
  const what = `cannot read PostgreSQL at ${shown}`;
  return version === 0 ? new StoreError(`${what}: ${notTheTables}`) : versionError(what, version);
}

const notTheTables = "the tables do not exist: `penstock effects` creates them when it starts";

export const hints = {
  "42501": "the user lacks a privilege: let it own the database, or the schema penstock_effects",
  "42P01": notTheTables,
  "3F000": notTheTables,
};
