// A connection to the database's file: how it is opened, and what its faults are called. It knows
// no tables but that of the schema's version. Runs in threads of its own only, because node:sqlite
// answers when it is done.

import path from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { makeOwnFile } from "../../../../platform/base/own-file.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import type { Value } from "../../../../platform/base/table.ts";
import { schemaFrom, schemaVersion, sqlite } from "../rows/schema.ts";
import { mustBeReadable } from "./file-access.ts";

const busyTimeoutMs = 5_000;
const writerCacheKiB = 128 * 1024;
const readerCacheKiB = 16 * 1024;
/**
 * The log is written into the file when it has so many pages of 4 KiB: 128 MiB. Many commits touch
 * the same pages, so that later means less to write.
 */
const checkpointPages = 32_768;
const logBytesMax = 256 * 1024 * 1024;

export interface Statement {
  /** Rows that were changed. */
  run(...values: readonly Value[]): number;
  get(...values: readonly Value[]): Value[] | undefined;
  all(...values: readonly Value[]): Value[][];
  iterate(...values: readonly Value[]): IterableIterator<Value[]>;
}

/** Which part of a transaction it is. */
export interface Part {
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export class Database {
  readonly file: string;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  private constructor(file: string, db: DatabaseSync) {
    this.file = file;
    this.#db = db;
  }

  /** Makes the file where there is none, and brings its tables up to date. */
  static forWriting(file: string): Database {
    return faults(`open ${file}`, () => {
      // It will hold what is known of people. SQLite gives its log and its index its mode.
      makeOwnFile(file);
      const db = new DatabaseSync(file, { timeout: busyTimeoutMs });
      try {
        spillBeside(file, db);
        // Loss of power can take the last commits, never a part of one: what they applied is read
        // from the stream again.
        db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA mmap_size = 0;
          PRAGMA cache_size = -${writerCacheKiB}; PRAGMA wal_autocheckpoint = ${checkpointPages};
          PRAGMA journal_size_limit = ${logBytesMax};`);
        bringUpToDate(file, db);
      } catch (error) {
        db.close();
        throw error;
      }
      return new Database(file, db);
    });
  }

  /** Writes nothing, and works beside a writer of another process. */
  static forReading(file: string, cacheKiB = readerCacheKiB): Database {
    mustBeReadable(file);
    return faults(`read ${file}`, () => {
      const db = new DatabaseSync(file, { readOnly: true, timeout: busyTimeoutMs });
      try {
        spillBeside(file, db);
        db.exec(`PRAGMA mmap_size = 0; PRAGMA cache_size = -${cacheKiB};`);
        const version = versionOf(db);
        if (version !== schemaVersion) throw new StoreError(otherVersion(file, version));
      } catch (error) {
        db.close();
        throw error;
      }
      return new Database(file, db);
    });
  }

  /** The same statement for the same text: for those that are asked again and again. */
  prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepare(sql: string): Statement {
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    return new Prepared(statement);
  }

  /**
   * All of `work` or nothing of it. Faults of the database come out as StoreErrors. While a
   * transaction is being written in parts, it is done within that one.
   */
  transaction<Result>(kind: "read" | "write", work: () => Result): Result {
    const what = `${kind === "read" ? "read" : "write to"} ${this.file}`;
    if (this.#db.isTransaction) return faults(what, work);
    return faults(what, () => {
      this.#db.exec(kind === "read" ? "BEGIN" : "BEGIN IMMEDIATE");
      return this.#finish(true, work);
    });
  }

  /**
   * Writes a part of a transaction, whose first part begins it and whose last part commits it.
   * Where one of them fails, nothing is written, and the later ones fail as well.
   */
  part({ isFirst, isLast }: Part, work: () => void): void {
    faults(`write to ${this.file}`, () => {
      if (isFirst) {
        this.undo();
        this.#db.exec("BEGIN IMMEDIATE");
      } else if (!this.#db.isTransaction)
        throw new StoreError(`write to ${this.file}: the transaction's first part is undone`);
      this.#finish(isLast, work);
    });
  }

  /** Undoes the parts of a transaction that will not come to its end. */
  undo(): void {
    // Some faults have ended the transaction already.
    if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
  }

  #finish<Result>(isLast: boolean, work: () => Result): Result {
    try {
      const result = work();
      if (isLast) this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      this.undo();
      throw error;
    }
  }

  begin(): void {
    faults(`read ${this.file}`, () => this.#db.exec("BEGIN"));
  }

  close(): void {
    this.#db.close();
  }
}

/** node:sqlite's statement, with the types of rows that are arrays. */
class Prepared implements Statement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  run(...values: readonly Value[]): number {
    return this.#statement.run(...values).changes as number;
  }

  get(...values: readonly Value[]): Value[] | undefined {
    return this.#statement.get(...values) as unknown as Value[] | undefined;
  }

  all(...values: readonly Value[]): Value[][] {
    return this.#statement.all(...values) as unknown as Value[][];
  }

  iterate(...values: readonly Value[]): IterableIterator<Value[]> {
    return this.#statement.iterate(...values) as unknown as IterableIterator<Value[]>;
  }
}

/**
 * What a statement has to undo, above 64 KiB, and what a sort does not hold in memory go to a file
 * without a name in the database's folder: a container may have no other folder to write to, and
 * there is no bound on a sort that would be in memory. It is for all connections of the process.
 */
function spillBeside(file: string, db: DatabaseSync): void {
  const folder = path.dirname(path.resolve(file)).replaceAll("'", "''");
  try {
    db.exec(`PRAGMA temp_store_directory = '${folder}'`);
  } catch {
    // A folder that may only be read, as a backup's: SQLite looks for another one itself.
  }
}

function bringUpToDate(file: string, db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT");
    const version = versionOf(db);
    if (version > schemaVersion) throw new StoreError(otherVersion(file, version));
    for (const sql of schemaFrom(version, sqlite)) db.exec(sql);
    db.exec("DELETE FROM schema_version");
    db.prepare("INSERT INTO schema_version VALUES (?)").run(schemaVersion);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(db: DatabaseSync): number {
  const row = db.prepare("SELECT max(version) AS version FROM schema_version").get();
  return (row?.["version"] as number | null) ?? 0;
}

function otherVersion(file: string, version: number): string {
  return version > schemaVersion
    ? `open ${file}: its tables are of version ${version}, and this release knows ${schemaVersion}: run a newer release`
    : `read ${file}: its tables are of version ${version}, and this release reads ${schemaVersion}: run \`penstock effects\` of this release first`;
}

/** `penstock effects rebuild` is of no help: it asks the database what was applied. */
export const remedyOfDamage =
  "put a copy of it back; without one, delete it and its -wal and start again: what the streams still hold is applied anew, and what older events did is lost";

/** Result codes of SQLite, without what the extended codes add. */
const remedies: Readonly<Record<number, string>> = {
  5: "another process keeps it locked: end that process",
  6: "another process keeps it locked: end that process",
  8: "the file or its folder may only be read: allow this user to write to both",
  10: "the disk fails to read or write: look into the system's log, and for space on the disk",
  11: `the file is damaged: ${remedyOfDamage}`,
  13: "the disk is full: make room on it",
  14: "the file cannot be opened: look for the folder, and whether this user may use it",
  26: "the file is no SQLite database: name another one, or delete it",
};

/** Throws what `work` throws, and a fault of SQLite as a StoreError. */
export function faults<Result>(what: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
    if (code === undefined) throw error;
    const remedy = remedies[code & 0xff];
    const reason = error instanceof Error ? error.message : "";
    throw new StoreError(`${what}: ${remedy === undefined ? reason : `${remedy} (${reason})`}`, {
      cause: error,
    });
  }
}
