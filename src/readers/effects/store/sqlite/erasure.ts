// Removes persons from the file and overwrites the deleted data. Truncates the database's
// write-ahead log, unless another process is reading the file.

import { setTimeout as delay } from "node:timers/promises";
import { isBusy } from "../../../../platform/base/files.ts";
import {
  type ErasedPeople,
  type ErasedProject,
  type ErasingSql,
  eraseProjectRows,
  eraseRows,
  hasProjectRows,
  idsOfPersons,
  type PeopleErasure,
} from "../erase-rows.ts";
import { Database, faults } from "./database.ts";
import { mustBeReadable } from "./file-access.ts";
import { numbered } from "./statements.ts";

const patienceMs = 60_000;
const emptyingMs = 10_000;
const retryMs = 100;

export class SqliteErasure implements PeopleErasure {
  readonly #file: string;

  constructor({ file }: { readonly file: string }) {
    this.#file = file;
  }

  idsOf(projectId: string, ids: readonly string[]): Promise<string[]> {
    return this.#read((database) => idsOfPersons(sqlOf(database), projectId, ids));
  }

  hasProject(projectId: string): Promise<boolean> {
    return this.#read((database) => hasProjectRows(sqlOf(database), projectId));
  }

  erase(projectId: string, ids: readonly string[]): Promise<ErasedPeople> {
    return this.#write((database) => eraseRows(sqlOf(database), projectId, ids));
  }

  eraseProject(projectId: string): Promise<ErasedProject> {
    return this.#write((database) => eraseProjectRows(sqlOf(database), projectId));
  }

  async #read<T>(work: (database: Database) => Promise<T>): Promise<T> {
    const database = Database.forReading(this.#file);
    try {
      return await work(database);
    } finally {
      database.close();
    }
  }

  async #write<T>(work: (database: Database) => Promise<T>) {
    mustBeReadable(this.#file);
    const database = Database.forWriting(this.#file);
    try {
      database.exec("PRAGMA secure_delete = ON");
      const untilMs = performance.now() + patienceMs;
      while (!begun(database))
        if (performance.now() > untilMs) faults(`write to ${this.#file}`, () => begin(database));
        else await delay(retryMs);
      const done = await work(database);
      faults(`write to ${this.#file}`, () => database.exec("COMMIT"));
      return { ...done, remains: await this.#emptyLog(database) };
    } catch (error) {
      database.undo();
      throw error;
    } finally {
      database.close();
    }
  }

  async #emptyLog(database: Database): Promise<string[]> {
    const file = this.#file;
    const older = `older versions of these rows in free space of ${file}, until a VACUUM of it`;
    const untilMs = performance.now() + emptyingMs;
    while (performance.now() < untilMs) {
      const [isBusy] = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() ?? [];
      if (isBusy === 0) return [older];
      await delay(retryMs);
    }
    return [older, `older versions of these rows in ${file}-wal, until it is overwritten`];
  }
}

function begin(database: Database): void {
  database.exec("BEGIN IMMEDIATE");
}

function begun(database: Database): boolean {
  try {
    begin(database);
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

function sqlOf(database: Database): ErasingSql {
  const prepared = (sql: string) => database.prepared(numbered(sql));
  return {
    textType: "TEXT",
    uuid: (parameter) => `unhex(${parameter}, '-')`,
    run: async (sql, values = []) => prepared(sql).run(...values).changes,
    all: async (sql, values = []) => prepared(sql).all(...values),
  };
}
