import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Manifest } from "../../src/readers/sinks/parquet/commit.ts";
import { duckdb } from "../../src/readers/sinks/parquet/parquet-maker.ts";

const types = {
  events: "{'project_id': VARCHAR, 'day': DATE}",
  rejected: "{'day': DATE}",
  incidents: "{'day': DATE}",
} as const;
let connecting: ReturnType<typeof connected> | undefined;

async function connected() {
  const instance = await duckdb().DuckDBInstance.create(":memory:", { threads: "1" });
  return await instance.connect();
}

export async function askedOfParquet(
  folder: string,
  sql: string,
): Promise<Record<string, unknown>[]> {
  connecting ??= connected();
  const names = (["events", "rejected", "incidents"] as const).filter((name) =>
    existsSync(path.join(folder, name)),
  );
  const tables = names.map(
    (name) =>
      `${name} AS (FROM read_parquet('${folder}/${name}/**/*.parquet', hive_partitioning = true, hive_types = ${types[name]}))`,
  );
  const connection = await connecting;
  const all = tables.length === 0 ? sql : `WITH ${tables.join(", ")} ${sql}`;
  return (await connection.runAndReadAll(all)).getRowObjectsJson();
}

export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(folder, "_penstock/manifest.json"), "utf8"));
}

export async function positionsOfParquet(folder: string): Promise<Record<string, number>> {
  const { positions } = manifestOf(folder);
  return Object.fromEntries(positions.map(({ stream, sequence }) => [stream, sequence]));
}
