// What both sides that only read have in common: the file is opened with the first question, and
// each answer is of one moment.

import { Database, type Statement } from "./database.ts";

export class ReadingSide {
  protected readonly file: string;
  readonly #cacheKiB: number | undefined;
  #database: Database | undefined;

  /** `database`: one that is open, whose transaction it is to see. */
  constructor(file: string, cacheKiB?: number, database?: Database) {
    this.file = file;
    this.#cacheKiB = cacheKiB;
    this.#database = database;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  /** Does `work` in a transaction. */
  protected read<Result>(work: () => Result): Result {
    this.#database ??= Database.forReading(this.file, this.#cacheKiB);
    return this.#database.transaction("read", work);
  }

  /** Within `read`. */
  protected prepared(sql: string): Statement {
    return this.#database!.prepared(sql);
  }
}
