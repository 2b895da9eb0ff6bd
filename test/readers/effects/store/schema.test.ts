import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { Column } from "../../../../src/platform/base/table.ts";
import { PostgresStore } from "../../../../src/readers/effects/store/postgres/store.ts";
import * as tables from "../../../../src/readers/effects/store/rows/tables.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { newDatabase } from "./postgres-rig.ts";

const server = await postgresForFile();

function recorded(name: string): string {
  return readFileSync(path.join(import.meta.dirname, name), "utf8");
}

const backToVersion1 = [
  "DROP TABLE large_properties",
  "DROP TABLE installation",
  "ALTER TABLE rejected DROP COLUMN distinct_id",
  "CREATE TABLE runs (id bigint)",
  "UPDATE schema_version SET version = 1",
];

async function open(store: SqliteStore | PostgresStore): Promise<void> {
  await store.open();
  await store.close();
}

function sqliteSchema(file: string): string {
  const database = new DatabaseSync(file);
  try {
    const rows = database.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").all();
    const statements = rows.map(({ sql }) => String(sql).replaceAll(/\s+/g, " "));
    const plain = statements.map((sql) => sql.replaceAll('"', "").replaceAll(/ ?([()]) ?/g, "$1"));
    return `${plain.sort().join("\n")}\n`;
  } finally {
    database.close();
  }
}

const postgresParts = [
  `SELECT format('column %s.%s %s %s%s%s%s', c.relname, a.attname,
      format_type(a.atttypid, a.atttypmod), coalesce('COLLATE ' || collname, ''),
      CASE WHEN attnotnull THEN ' NOT NULL' END, CASE attidentity WHEN 'a' THEN ' IDENTITY' END,
      CASE WHEN attgenerated <> '' THEN ' AS ' || pg_get_expr(adbin, adrelid) END)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation o ON o.oid = a.attcollation AND o.collname <> 'default'
    WHERE c.relkind IN ('r', 'v') AND c.relnamespace = 'penstock_effects'::regnamespace
    ORDER BY c.relname, a.attnum`,
  `SELECT format('table %s %s', relname, reloptions) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'penstock_effects'::regnamespace ORDER BY relname`,
  `SELECT indexdef FROM pg_indexes WHERE schemaname = 'penstock_effects' ORDER BY indexname`,
  `SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'penstock_effects'::regnamespace AND contype <> 'n' ORDER BY conname`,
];

async function postgresSchema(url: string): Promise<string> {
  const parts: string[] = [];
  for (const sql of postgresParts)
    for (const row of await asked(url, sql)) parts.push(String(Object.values(row)[0]));
  return `${parts.join("\n")}\n`;
}

test("a new and an upgraded SQLite database have the recorded schema", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-schema-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "effects.sqlite");
  await open(new SqliteStore({ file }));
  expect(sqliteSchema(file)).toBe(recorded("schema.sqlite.txt"));
  const database = new DatabaseSync(file);
  for (const sql of backToVersion1) database.exec(sql);
  database.close();
  await open(new SqliteStore({ file }));
  expect(sqliteSchema(file)).toBe(recorded("schema.sqlite.txt"));
});

test("a new and an upgraded PostgreSQL database have the recorded schema", async () => {
  const url = await newDatabase(server);
  await open(new PostgresStore({ url }));
  expect(await postgresSchema(url)).toBe(recorded("schema.postgres.txt"));
  await asked(url, ["SET search_path = penstock_effects", ...backToVersion1].join(";"));
  await open(new PostgresStore({ url }));
  expect(await postgresSchema(url)).toBe(recorded("schema.postgres.txt"));
});

test("an added column does not change the existing upgrades", async () => {
  const exported: readonly unknown[] = Object.values(tables);
  for (const table of new Set(exported.filter(isTable))) addColumnForTest(table);
  // A new copy, which reads the tables with the column.
  const path = "../../../../src/readers/effects/store/rows/schema.ts?copy";
  const { postgres, schemaFrom, schemaVersion, sqlite } = (await import(path)) as Schema;
  for (const dialect of [sqlite, postgres]) {
    expect(schemaFrom(0, dialect).join("\n")).toContain("added_later");
    const upgrades = schemaFrom(1, dialect);
    expect(upgrades).toHaveLength(schemaVersion - 1);
    expect(upgrades.join("\n")).not.toContain("added_later");
  }
});

type Schema = typeof import("../../../../src/readers/effects/store/rows/schema.ts");

interface ChangeableTable {
  readonly columns: string[];
  readonly types: Record<string, Column<string>>;
}

function isTable(value: unknown): value is ChangeableTable {
  return typeof value === "object" && value !== null && "types" in value;
}

function addColumnForTest({ columns, types }: ChangeableTable): void {
  columns.push("added_later");
  types["added_later"] = { type: "text" };
  onTestFinished(() => {
    columns.pop();
    delete types["added_later"];
  });
}
