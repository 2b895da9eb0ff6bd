import { Database, type Statement } from "./database.ts";

export class ReadingSide {
  protected readonly file: string;
  readonly #cacheKiB: number | undefined;
  #database: Database | undefined;

  /**
   * Reads within the transaction of `database` if it is given; otherwise opens the file at the
   * first query.
   */
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

  /** Must be called within `read`. */
  protected prepared(sql: string): Statement {
    return this.#database!.prepared(sql);
  }
}
