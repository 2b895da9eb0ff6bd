// A connection to the database file. It is used only in separate threads, because node:sqlite is
// synchronous.

import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  type FileLock,
  isBusy,
  makeOwnFile,
  mustBePlain,
  takeFileLock,
} from "../../../../platform/base/files.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import type { Value } from "../../../../platform/base/table.ts";
import { schemaFrom, schemaVersion, sqlite, versionError } from "../rows/schema.ts";
import { isAbsent, mustBeReadable } from "./file-access.ts";

const busyTimeoutMs = 5_000;
const writerCacheKiB = 128 * 1024;
const readerCacheKiB = 16 * 1024;
/** Pages (128 MiB) between checkpoints. It is high, because commits change the same pages. */
const checkpointPages = 32_768;
const logBytesMax = 256 * 1024 * 1024;

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number };
  get(...values: readonly Value[]): Value[] | undefined;
  all(...values: readonly Value[]): Value[][];
  iterate(...values: readonly Value[]): IterableIterator<Value[]>;
}

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

  static forWriting(file: string): Database {
    return faults(`open ${file}`, () => {
      makeOwnFile(file);
      const db = new DatabaseSync(file, { timeout: busyTimeoutMs });
      try {
        spillBeside(file, db);
        // A power failure can lose the last commits, but it never leaves a part of a commit. The
        // events of lost commits are read again.
        db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA mmap_size = 0;
          PRAGMA cache_size = -${writerCacheKiB}; PRAGMA wal_autocheckpoint = ${checkpointPages};
          PRAGMA journal_size_limit = ${logBytesMax};`);
        migrate(file, db);
      } catch (error) {
        db.close();
        throw error;
      }
      return new Database(file, db);
    });
  }

  static forReading(file: string, cacheKiB = readerCacheKiB): Database {
    mustBeReadable(file);
    return faults(`read ${file}`, () => {
      const db = new DatabaseSync(file, { readOnly: true, timeout: busyTimeoutMs });
      try {
        spillBeside(file, db);
        db.exec(`PRAGMA mmap_size = 0; PRAGMA cache_size = -${cacheKiB};`);
        const version = versionOf(db);
        if (version !== schemaVersion) throw versionError(`cannot open ${file}`, version);
      } catch (error) {
        db.close();
        throw error;
      }
      return new Database(file, db);
    });
  }

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
    return statement as unknown as Statement;
  }

  transaction<Result>(kind: "read" | "write", work: () => Result): Result {
    const what = `${kind === "read" ? "read" : "write to"} ${this.file}`;
    if (this.#db.isTransaction) return faults(what, work);
    return faults(what, () => {
      this.#db.exec(kind === "read" ? "BEGIN" : "BEGIN IMMEDIATE");
      return this.#finish(true, work);
    });
  }

  /** Writes a part of a commit. If a part fails, all parts are rolled back. */
  part({ isFirst, isLast }: Part, work: () => void): void {
    faults(`write to ${this.file}`, () => {
      if (isFirst) {
        this.undo();
        this.#db.exec("BEGIN IMMEDIATE");
      } else if (!this.#db.isTransaction)
        throw new StoreError(
          `cannot write to ${this.file}: the transaction's first part was rolled back`,
        );
      this.#finish(isLast, work);
    });
  }

  undo(): void {
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

  close(): void {
    this.#db.close();
  }
}

/**
 * Lets SQLite create its temporary files in the folder of the database. They are needed for large
 * rollbacks and sorts, and a container may have no other writable folder.
 */
function spillBeside(file: string, db: DatabaseSync): void {
  const folder = path.dirname(path.resolve(file)).replaceAll("'", "''");
  try {
    db.exec(`PRAGMA temp_store_directory = '${folder}'`);
  } catch {
    // The error is ignored. If the folder is read-only, SQLite uses another folder.
  }
}

function migrate(file: string, db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT");
    const version = versionOf(db);
    if (version > schemaVersion) throw versionError(`cannot open ${file}`, version);
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

/** A rebuild would not help, because it reads the positions from the damaged database. */
export const remedyOfDamage =
  "restore a copy; if there is none, delete the file and its -wal, and restart: events that are still in the streams are applied again, and the effects of older events are lost";

const remedies: Readonly<Record<number, string>> = {
  5: "another process has locked the file: end that process",
  6: "another process has locked the file: end that process",
  8: "the file or its folder is read-only: allow this user to write to both",
  10: "the disk cannot be read or written: check the system's log, and the space on the disk",
  11: `the file is damaged: ${remedyOfDamage}`,
  13: "the disk is full: free some space",
  14: "the file cannot be opened: check that the folder exists and that this user may use it",
  26: "the file is not an SQLite database: use another file, or delete this file",
};

export function faults<Result>(what: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
    if (code === undefined) throw error;
    const remedy = remedies[code & 0xff];
    const reason = error instanceof Error ? error.message : "";
    throw new StoreError(
      `cannot ${what}: ${remedy === undefined ? reason : `${remedy} (${reason})`}`,
      {
        cause: error,
      },
    );
  }
}

/**
 * Locks an empty file next to the database, so that there is only one writer. Throws a StoreError
 * immediately if another process has the lock.
 */
export function takeWriterLock(file: string): FileLock {
  return faults(`open ${file}`, () => {
    const name = `${file}.writer-lock`;
    const lock = takeFileLock(name);
    if (lock === "busy")
      throw new StoreError(
        `cannot open ${file}: another \`penstock effects\` writes to it. End that process, or use another PENSTOCK_EFFECTS_URL`,
      );
    return lock;
  });
}

/**
 * Returns true if a writer has the lock. Does not take the lock. Throws a StoreError if the state
 * of the lock is unknown.
 */
export function isWriterLocked(file: string): boolean {
  const name = `${file}.writer-lock`;
  if (isAbsent(name)) return false;
  mustBePlain(name);
  return faults(`read ${name}`, () => {
    const lock = new DatabaseSync(name, { readOnly: true, timeout: 0 });
    try {
      lock.prepare("SELECT count(*) FROM sqlite_master").get();
      return false;
    } catch (error) {
      if (isBusy(error)) return true;
      throw error;
    } finally {
      lock.close();
    }
  });
}

export class ReadingSide {
  protected readonly file: string;
  readonly #cacheKiB: number | undefined;
  #database: Database | undefined;

  constructor(file: string, cacheKiB?: number, database?: Database) {
    this.file = file;
    this.#cacheKiB = cacheKiB;
    this.#database = database;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  protected read<Result>(work: () => Result): Result {
    this.#database ??= Database.forReading(this.file, this.#cacheKiB);
    return this.#database.transaction("read", work);
  }

  /** Returns a cached statement. It must be called within `read`. */
  protected prepared(sql: string): Statement {
    return this.#database!.prepared(sql);
  }
}
