// Creates Parquet files with DuckDB. DuckDB has 70 MB, so it is installed separately.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { quoted, rowsSql, type TableName } from "./rows.ts";

interface ParquetFile {
  readonly table: TableName;
  readonly rows: readonly string[];
  readonly rowBytesMax: number;
  readonly file: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly projectId?: string;
}

interface DuckDb {
  readonly DuckDBInstance: {
    create(file: string, settings: Readonly<Record<string, string>>): Promise<DuckDbInstance>;
  };
}

interface DuckDbInstance {
  connect(): Promise<DuckDbConnection>;
  closeSync(): void;
}

interface DuckDbConnection {
  run(sql: string, values?: readonly string[]): Promise<{ readonly rowsChanged: number }>;
  runAndReadAll(sql: string): Promise<{ getRowObjectsJson(): Record<string, unknown>[] }>;
  closeSync(): void;
}

const packageName = "@duckdb/node-api";
const require = createRequire(import.meta.url);
const root = resolve(import.meta.dirname, "../../../..");
const places = [".cache/duckdb", "duckdb"].map((folder) => join(root, folder, "node_modules"));
const memoryMebibytes = [512, 1_024, 2_048] as const;
const rowGroupBytes = 67_108_864;

async function makeFile(
  connection: DuckDbConnection,
  { table, rows, rowBytesMax, file, projectId, metadata }: ParquetFile,
): Promise<number> {
  const select = rowsSql(table, { files: rows, rowBytesMax });
  const project = projectId === undefined ? "" : `${quoted(projectId)} AS project_id, `;
  const options = [
    "FORMAT parquet",
    "COMPRESSION zstd",
    `ROW_GROUP_SIZE_BYTES ${rowGroupBytes}`,
    ...(metadata === undefined ? [] : [`KV_METADATA ${structOf(metadata)}`]),
  ];
  const { rowsChanged } = await connection.run(
    `COPY (SELECT ${project}* FROM (${select})) TO ${quoted(file)} (${options.join(", ")})`,
  );
  return rowsChanged;
}

/** Runs `work`, and runs it again with more memory if needed. `scratch` is for temporary files. */
export async function withParquetMaker<Result>(
  scratch: string,
  work: (make: (file: ParquetFile) => Promise<number>) => Promise<Result>,
): Promise<Result> {
  for (let nth = 0; ; nth++) {
    const instance = await duckdb().DuckDBInstance.create(":memory:", {
      threads: "1",
      memory_limit: `${memoryMebibytes[nth]}MiB`,
      temp_directory: scratch,
      preserve_insertion_order: "false",
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
    });
    const connection = await instance.connect();
    try {
      return await work((file) => makeFile(connection, file));
    } catch (error) {
      const isOutOfMemory = /^Out of Memory Error/.test((error as Error).message);
      if (!isOutOfMemory || nth + 1 === memoryMebibytes.length) throw error;
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
  }
}

/** Returns DuckDB. If it is not installed, throws an error with instructions. */
export function duckdb(): DuckDb {
  const place = [...places, undefined].find((one) => one === undefined || existsSync(one));
  try {
    return require(place === undefined ? packageName : join(place, packageName)) as DuckDb;
  } catch (error) {
    const { message } = error as Error;
    throw new Error(
      `Parquet files need DuckDB, which cannot be loaded (${message.split("\n")[0]}): in a clone, run \`npm run setup -- --parquet\`; for the npm package, \`npm install @duckdb/node-api\` in the same folder`,
      { cause: error },
    );
  }
}

function structOf(members: Readonly<Record<string, string>>): string {
  const texts = Object.entries(members).map(([name, text]) => `${name}: ${quoted(text)}`);
  return `{${texts.join(", ")}}`;
}
