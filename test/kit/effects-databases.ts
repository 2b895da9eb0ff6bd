// Creates databases for the effects: a SQLite file in a new folder, or a database on a PostgreSQL
// server that is started for the test.

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "pg";
import { type StorePlace, storeAt } from "../../src/readers/effects/store/open.ts";
import type { EffectsStore } from "../../src/readers/effects/store/port.ts";
import { startPostgres, type TestPostgres, type TestPostgresOptions } from "./postgres.ts";

export type DatabaseKind = "SQLite" | "PostgreSQL";

export interface EffectsDatabases {
  readonly kind: DatabaseKind;
  readonly postgres: TestPostgres | undefined;
  newDatabase(): Promise<StorePlace>;
  copy(place: StorePlace): Promise<string>;
  /** Restores a copy of the database. With PostgreSQL, all databases of the server are restored. */
  restore(place: StorePlace, copy: string): Promise<void>;
  breakLock(place: StorePlace): Promise<void>;
  remove(): Promise<void>;
}

export async function startDatabases(
  kind: DatabaseKind,
  options: TestPostgresOptions = {},
): Promise<EffectsDatabases> {
  return kind === "SQLite"
    ? new SqliteFiles()
    : new PostgresDatabases(await startPostgres(options));
}

export async function openedStore(place: StorePlace): Promise<EffectsStore> {
  const store = await storeAt(place);
  await store.open();
  return store;
}

class SqliteFiles implements EffectsDatabases {
  readonly kind = "SQLite";
  readonly postgres = undefined;
  readonly #folder = mkdtempSync(path.join(tmpdir(), "penstock-test-effects-"));
  #files = 0;
  #copies = 0;

  async newDatabase(): Promise<StorePlace> {
    return { kind: "sqlite", file: path.join(this.#folder, `${++this.#files}.sqlite`) };
  }

  async copy(place: StorePlace): Promise<string> {
    const copy = path.join(this.#folder, `copy-${++this.#copies}`);
    cpSync(fileOf(place), copy);
    return copy;
  }

  async restore(place: StorePlace, copy: string): Promise<void> {
    // The log files are removed. Otherwise, SQLite would apply them to the restored file.
    for (const suffix of ["-wal", "-shm"]) rmSync(`${fileOf(place)}${suffix}`, { force: true });
    cpSync(copy, fileOf(place));
  }

  async breakLock(place: StorePlace): Promise<void> {
    rmSync(`${fileOf(place)}.writer-lock`);
  }

  async remove(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

class PostgresDatabases implements EffectsDatabases {
  readonly kind = "PostgreSQL";
  readonly postgres: TestPostgres;
  #databases = 0;

  constructor(server: TestPostgres) {
    this.postgres = server;
  }

  async newDatabase(): Promise<StorePlace> {
    const name = `effects_${++this.#databases}`;
    await this.#run(this.postgres.url, `CREATE DATABASE ${name}`);
    return { kind: "postgres", url: this.postgres.url.replace(/postgres$/, name) };
  }

  copy(): Promise<string> {
    return this.postgres.copyData();
  }

  restore(_: StorePlace, copy: string): Promise<void> {
    return this.postgres.restoreData(copy);
  }

  async breakLock(place: StorePlace): Promise<void> {
    const sql = `SELECT pg_terminate_backend(pid) FROM pg_locks
      JOIN pg_database AS d ON d.oid = database
      WHERE locktype = 'advisory' AND d.datname = current_database()`;
    await this.#run(urlOf(place), sql);
  }

  remove(): Promise<void> {
    return this.postgres.remove();
  }

  async #run(url: string, sql: string): Promise<void> {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }
}

function fileOf(place: StorePlace): string {
  if (place.kind === "sqlite") return place.file;
  throw new Error("a file of SQLite was expected");
}

export function urlOf(place: StorePlace): string {
  return place.kind === "sqlite" ? `sqlite:${place.file}` : place.url;
}
