// The common part of the read-only sides: the file is opened at the first query, and each answer is
// of one moment.

import { Database, type Statement } from "./database.ts";

export class ReadingSide {
  protected readonly file: string;
  readonly #cacheKiB: number | undefined;
  #database: Database | undefined;

  /** `database`: an open one whose transaction it reads in. */
  constructor(file: string, cacheKiB?: number, database?: Database) {
    this.file = file;
    this.#cacheKiB = cacheKiB;
    this.#database = database;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  /** Runs `work` in a transaction. */
  protected read<Result>(work: () => Result): Result {
    this.#database ??= Database.forReading(this.file, this.#cacheKiB);
    return this.#database.transaction("read", work);
  }

  /** Call it within `read`. */
  protected prepared(sql: string): Statement {
    return this.#database!.prepared(sql);
  }
}
