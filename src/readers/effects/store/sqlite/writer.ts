import type { FileLock } from "../../../../platform/base/files.ts";
import type { Table, Value } from "../../../../platform/base/table.ts";
import { bindSql } from "../installation.ts";
import { FencedError, type GroupName } from "../port.ts";
import { type FlatCommit, upserted, upsertedLists } from "../rows/flat-commit.ts";
import * as tables from "../rows/tables.ts";
import { isTrimDue, rejectedRetained, rowsOfProjects, trimOutboxSql } from "../shared-sql.ts";
import { Database, type Part, type Statement, takeWriterLock } from "./database.ts";
import { SqliteLookups } from "./lookups.ts";
import {
  insertMembersSql,
  insertSql,
  numbered,
  resetMemberSql,
  selectSql,
  updateSql,
  upsertSql,
} from "./statements.ts";

/**
 * Number of rows per statement. Several rows are written together, because the overhead of a
 * statement is as large as the cost of a row.
 */
const rowsACall = 16;

export class SqliteWriter {
  readonly #file: string;
  #lock: FileLock | undefined;
  #database: Database | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** Opens the database. All other methods open it too, because they may run in a new thread. */
  open(): void {
    this.#open();
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
    this.#lock?.close();
    this.#lock = undefined;
  }

  /**
   * Returns true if this writer still has the lock. If the locked file was replaced, another
   * process could lock the new file.
   */
  holdsLock(): boolean {
    return this.#lock?.isHeld() === true;
  }

  lastCommit(): number {
    const database = this.#open();
    database.undo();
    return database.transaction("read", () => {
      return this.#prepared("SELECT last_commit FROM writer").get()?.[0] as number;
    });
  }

  commit(commit: FlatCommit, part: Part): void {
    this.#open().part(part, () => {
      if (part.isFirst) this.#number(commit);
      this.#writeMembers(commit);
      this.#writeGroups(commit.groups);
      const once = `${insertSql(tables.links)} ON CONFLICT DO NOTHING`;
      this.#each(this.#prepared(once), tables.links.columns.length, commit.links);
      const removed = "DELETE FROM position_trail WHERE stream = ? AND sequence = ?";
      this.#each(this.#prepared(removed), 2, commit.trailRemoved);
      for (const list of upsertedLists) this.#upsert(upserted[list], commit[list]);
      this.#writeRejected(commit.rejected);
      this.#insert(tables.incidents, commit.incidents);
    });
  }

  members(projectId: string, distinctIds: readonly string[]): Value[][] {
    return this.#lookups().members(projectId, distinctIds);
  }

  groups(names: readonly GroupName[]): Value[][] {
    return this.#lookups().groups(names);
  }

  groupTypes(projectIds: readonly string[]): Value[][] {
    return this.#lookups().groupTypes(projectIds);
  }

  activeIds(days: readonly (readonly [projectId: string, day: string])[]): Value[][] {
    const sql = `${selectSql(tables.activeIds)} WHERE project_id = ? AND day = ?`;
    return this.#select(sql, days);
  }

  activity(projectIds: readonly string[]): Value[][] {
    const sql = `${selectSql(tables.activity)} WHERE project_id = ?`;
    return this.#select(
      sql,
      projectIds.map((one) => [one]),
    );
  }

  largeProperties(): Value[][] {
    return this.#select(selectSql(tables.largeProperties), [[]]);
  }

  bindTo(prefix: string): void {
    this.#open().transaction("write", () => this.#prepared(numbered(bindSql)).run(prefix));
  }

  outbox(limit: number, afterId: number): Value[][] {
    const columns = tables.outbox.columns.join(", ");
    const sql = `SELECT id, ${columns} FROM outbox WHERE id > ? ORDER BY id LIMIT ?`;
    return this.#select(sql, [[afterId, limit]]);
  }

  trimOutbox(rowsMax: number): number {
    return this.#open().transaction(
      "write",
      () => this.#prepared(numbered(trimOutboxSql)).run(rowsMax).changes,
    );
  }

  published(messageIds: readonly string[]): void {
    this.#open().transaction("write", () => {
      const remove = this.#prepared("DELETE FROM outbox WHERE message_id = ?");
      for (const messageId of messageIds) remove.run(messageId);
    });
  }

  positions(): { rows: Value[][]; trail: Value[][] } {
    return this.#open().transaction("read", () => ({
      rows: this.#prepared(`${selectSql(tables.positions)} ORDER BY stream`).all(),
      trail: this.#prepared(`${selectSql(tables.trail)} ORDER BY stream, sequence`).all(),
    }));
  }

  #lookups(): SqliteLookups {
    return new SqliteLookups(this.#file, this.#open());
  }

  #number({ number, after }: FlatCommit): void {
    const next = "UPDATE writer SET last_commit = ? WHERE last_commit = ?";
    if (this.#prepared(next).run(number, after).changes === 0)
      throw new FencedError(
        `cannot write to ${this.#file}: another program has written to the database (its last commit is not ${after}): end that program, and start \`penstock effects\` again`,
      );
  }

  #writeMembers({ barePersons, newPersons, members, mergedMembers }: FlatCommit): void {
    let persons = this.#insertMembers(tables.barePersons, barePersons);
    persons += this.#insertMembers(tables.members, newPersons);
    persons += this.#put(tables.members, members);
    const isPerson = this.#prepared(
      "SELECT merged_into IS NULL FROM members WHERE project_id = ? AND uuid = unhex(?, '-')",
    );
    this.#insertMembers(tables.mergedMembers, mergedMembers, (row) => {
      if (isPerson.get(row[0]!, row[1]!)?.[0] === 1) persons--;
    });
    if (persons !== 0) this.#prepared("UPDATE totals SET persons = persons + ?").run(persons);
  }

  #insertMembers(
    table: Table,
    values: readonly Value[],
    replaces: (row: readonly Value[]) => void = () => {},
  ): number {
    const width = table.columns.length;
    const many = this.#prepared(insertMembersSql(table, rowsACall));
    const one = this.#prepared(insertMembersSql(table, 1));
    const reset = this.#prepared(resetMemberSql(table));
    let added = 0;
    for (let at = 0; at < values.length; ) {
      const count = values.length - at >= width * rowsACall ? rowsACall : 1;
      const rows = values.slice(at, at + width * count);
      const inserted = (count === 1 ? one : many).run(...rows).changes;
      added += inserted;
      for (let from = 0; inserted < count && from < rows.length; from += width) {
        const row = rows.slice(from, from + width);
        replaces(row);
        reset.run(...row);
      }
      at += width * count;
    }
    return added;
  }

  #writeGroups(values: readonly Value[]): void {
    const groups = this.#put(tables.groups, values);
    if (groups !== 0) this.#prepared("UPDATE totals SET groups = groups + ?").run(groups);
  }

  #put(table: Table, values: readonly Value[]): number {
    const update = this.#prepared(updateSql(table));
    const insert = this.#prepared(insertSql(table));
    const width = table.columns.length;
    let added = 0;
    for (let at = 0; at < values.length; at += width) {
      const row = values.slice(at, at + width);
      if (update.run(...row).changes > 0) continue;
      insert.run(...row);
      added++;
    }
    return added;
  }

  #writeRejected(values: readonly Value[]): void {
    this.#insert(tables.rejected, values);
    const count = this.#prepared(
      `INSERT INTO rejected_totals VALUES (?, ?)
       ON CONFLICT DO UPDATE SET total = total + excluded.total RETURNING total`,
    );
    // The statement counts the existing rows, because an operator may have deleted some.
    const oldest = this.#prepared(
      `DELETE FROM rejected WHERE project_id = ?1 AND id <= (
         SELECT id FROM rejected WHERE project_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
    );
    for (const [projectId, added] of rowsOfProjects(values, tables.rejected.columns.length)) {
      const total = count.get(projectId, added)?.[0] as number;
      if (isTrimDue(total, added)) oldest.run(projectId, rejectedRetained);
    }
  }

  #upsert(table: Table, values: readonly Value[]): void {
    if (values.length === 0) return;
    const width = table.columns.length;
    const many = values.length - (values.length % (width * rowsACall));
    if (many > 0)
      this.#each(
        this.#prepared(upsertSql(table, rowsACall)),
        width * rowsACall,
        values.slice(0, many),
      );
    this.#each(this.#prepared(upsertSql(table, 1)), width, values.slice(many));
  }

  #insert(table: Table, values: readonly Value[]): void {
    this.#each(this.#prepared(insertSql(table)), table.columns.length, values);
  }

  #each(statement: Statement, width: number, values: readonly Value[]): void {
    for (let at = 0; at < values.length; at += width)
      statement.run(...values.slice(at, at + width));
  }

  #select(sql: string, keys: readonly (readonly Value[])[]): Value[][] {
    return this.#open().transaction("read", () => {
      const statement = this.#prepared(sql);
      return keys.flatMap((key) => statement.all(...key));
    });
  }

  #prepared(sql: string): Statement {
    return this.#open().prepared(sql);
  }

  #open(): Database {
    this.#lock ??= takeWriterLock(this.#file);
    this.#database ??= Database.forWriting(this.#file);
    return this.#database;
  }
}
