// Makes Parquet files out of rows, by DuckDB as a library. It has 70 MB that nothing else needs, so
// it is fetched only for who asks for it, into a folder of its own, and loaded only here.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { quoted, rowsSql, type TableName } from "./columns.ts";

interface ParquetFile {
  readonly table: TableName;
  /** Files with rows, as columns.ts has them. */
  readonly rows: readonly string[];
  readonly rowBytesMax: number;
  /** Where it is made. */
  readonly file: string;
  /** Goes into the file's footer. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** A project that is to be a column: it is none of a row. */
  readonly projectId?: string;
}

/** The parts of DuckDB's client library that are used. */
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
/** In a clone, and in a bundle; else it is looked for like every package. */
const places = [".cache/duckdb", "duckdb"].map((folder) => join(root, folder, "node_modules"));
/** What it takes for rows as events usually are; else it is tried again with the next. */
const memoryMebibytes = [512, 1_024, 2_048] as const;
/** Rows are collected to groups of so many bytes, or of 122,880, and then compressed. */
const rowGroupBytes = 67_108_864;

class ParquetMaker {
  readonly #instance: DuckDbInstance;
  readonly #connection: DuckDbConnection;

  private constructor(instance: DuckDbInstance, connection: DuckDbConnection) {
    this.#instance = instance;
    this.#connection = connection;
  }

  /** Rejects, and says what to do, where DuckDB is not installed. `scratch`: a folder. */
  static async open(scratch: string, mebibytes: number): Promise<ParquetMaker> {
    const { DuckDBInstance } = duckdb();
    const instance = await DuckDBInstance.create(":memory:", {
      threads: "1",
      memory_limit: `${mebibytes}MiB`,
      temp_directory: scratch,
      preserve_insertion_order: "false",
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
    });
    return new ParquetMaker(instance, await instance.connect());
  }

  /** Gives the number of rows. The file is not on the disk yet. */
  async make({ table, rows, rowBytesMax, file, ...rest }: ParquetFile): Promise<number> {
    const { projectId, metadata } = rest;
    const select = rowsSql(table, { files: rows, rowBytesMax });
    const project = projectId === undefined ? "" : `${quoted(projectId)} AS project_id, `;
    const options = [
      ...["FORMAT parquet", "COMPRESSION zstd", `ROW_GROUP_SIZE_BYTES ${rowGroupBytes}`],
      ...(metadata === undefined ? [] : [`KV_METADATA ${structOf(metadata)}`]),
    ];
    const { rowsChanged } = await this.#connection.run(
      `COPY (SELECT ${project}* FROM (${select})) TO ${quoted(file)} (${options.join(", ")})`,
    );
    return rowsChanged;
  }

  close(): void {
    this.#connection.closeSync();
    this.#instance.closeSync();
  }
}

/** Does all of the work again, with more memory, where there was not enough. */
export async function withParquetMaker<Result>(
  scratch: string,
  work: (maker: ParquetMaker) => Promise<Result>,
): Promise<Result> {
  for (let nth = 0; ; nth++) {
    const maker = await ParquetMaker.open(scratch, memoryMebibytes[nth]!);
    try {
      return await work(maker);
    } catch (error) {
      const isOutOfMemory = /^Out of Memory Error/.test((error as Error).message);
      if (!isOutOfMemory || nth + 1 === memoryMebibytes.length) throw error;
    } finally {
      maker.close();
    }
  }
}

/** Throws, and says what to do, where DuckDB is not there. */
export function duckdb(): DuckDb {
  const place = [...places, undefined].find((one) => one === undefined || existsSync(one));
  try {
    return require(place === undefined ? packageName : join(place, packageName)) as DuckDb;
  } catch (error) {
    const { message } = error as Error;
    throw new Error(
      `Parquet files are made by DuckDB, which cannot be loaded (${message.split("\n")[0]}): in a clone, \`npm run setup -- --parquet\` fetches it; a bundle has it when it is made by \`npm run bundle -- <folder> --parquet\``,
      { cause: error },
    );
  }
}

function structOf(members: Readonly<Record<string, string>>): string {
  const texts = Object.entries(members).map(([name, text]) => `${name}: ${quoted(text)}`);
  return `{${texts.join(", ")}}`;
}
