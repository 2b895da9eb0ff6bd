// The reader's side of the database, in a thread of its own: answers what the port's reader is
// asked. Each answer comes out of one transaction, so it never shows half a commit. Pages are found
// by their last key, never by counting rows.

import type { Lane } from "../../../base/types.ts";
import { personUuid } from "../../people/person-uuid.ts";
import { linksMax, linksReadMax } from "../bounds.ts";
import {
  type AppliedStream,
  type Group,
  type GroupName,
  idBytes,
  type Link,
  type Page,
  type PageOf,
  type Person,
  recordedIncidentsMax,
  type Totals,
  type UsageDay,
  usageRowsMax,
} from "../port.ts";
import { projectsSql } from "../projects-sql.ts";
import type { Value } from "../rows/tables.ts";
import * as tables from "../rows/tables.ts";
import { spikesBegin } from "../spike-page.ts";
import { Database, type Statement, uuidBytes, uuidText } from "./database.ts";
import { selectSql } from "./statements.ts";
import { isWriterLocked } from "./writer-lock.ts";

/** Ids, and uuids of `mergedFrom`, that a person is shown with. */
const shownMax = 100;

/** The uuids of all members of the person whose row has the uuid ?2. */
const membersOfPerson = `WITH RECURSIVE tree (uuid) AS (
    SELECT ?2
    UNION ALL
    SELECT m.uuid FROM tree CROSS JOIN members AS m INDEXED BY members_merged
    ON m.project_id = ?1 AND m.merged_into = tree.uuid
  ), ids AS (
    SELECT m.distinct_id, m.uuid, m.first_ms, m.first_rank FROM tree
    CROSS JOIN members AS m ON m.project_id = ?1 AND m.uuid = tree.uuid
  )`;

const newestIncidentsSql = `${selectSql(tables.incidents)} ORDER BY id DESC LIMIT ?`;
const linkColumns = "a, b, kind, at_ms, event_uuid, outcome";
const placeColumns = "lane, partition, epoch, sequence, line";
const groupColumns = "type, key, properties, created_at_ms, updated_at_ms, version";

export class SqliteQueries {
  readonly #file: string;
  #database: Database | undefined;
  readonly #statements = new Map<string, Statement>();

  constructor(file: string) {
    this.#file = file;
  }

  close(): void {
    this.#statements.clear();
    this.#database?.close();
    this.#database = undefined;
  }

  personByDistinctId(projectId: string, distinctId: string): Person | undefined {
    return this.personByUuid(projectId, personUuid(projectId, distinctId));
  }

  personByUuid(projectId: string, uuid: string): Person | undefined {
    return this.#read(() => {
      const row = this.#personRow(projectId, uuidBytes(uuid));
      return row && this.#person(projectId, row);
    });
  }

  persons(projectId: string, { after, limit, bytesMax }: Page): PageOf<Person> {
    return this.#read(() => {
      const sql = `${selectSql(tables.members)}
        WHERE project_id = ? AND uuid > ? AND merged_into IS NULL ORDER BY uuid LIMIT ?`;
      const rows = this.#prepared(sql).iterate(projectId, uuidBytes(after ?? ""), limit + 1);
      return pageOf(rows, { limit, bytesMax }, (row) => {
        const person = this.#person(projectId, row);
        const bytes = person.propertiesJson.length + idBytes * person.distinctIdsTotal;
        return { result: person, bytes, key: uuidText(bytesAt(row, 1)) };
      });
    });
  }

  links(projectId: string, uuid: string): Link[] | undefined {
    return this.#read(() => {
      const row = this.#personRow(projectId, uuidBytes(uuid));
      if (row === undefined) return undefined;
      const sql = `${membersOfPerson}
        SELECT ${linkColumns} FROM (
          SELECT * FROM (
            SELECT ${linkColumns}, ${placeColumns} FROM ids
            CROSS JOIN person_links AS l ON l.project_id = ?1 AND l.a = ids.distinct_id LIMIT ?4)
          UNION
          SELECT * FROM (
            SELECT ${linkColumns}, ${placeColumns} FROM ids
            CROSS JOIN person_links AS l ON l.project_id = ?1 AND l.b = ids.distinct_id LIMIT ?4)
        ) ORDER BY at_ms, ${placeColumns} LIMIT ?3`;
      const values = [projectId, bytesAt(row, 1), linksMax, linksReadMax];
      return this.#prepared(sql)
        .all(...values)
        .map(linkOf);
    });
  }

  group({ projectId, type, key }: GroupName): Group | undefined {
    return this.#read(() => {
      const sql = `SELECT ${groupColumns} FROM groups WHERE project_id = ? AND type = ? AND key = ?`;
      const row = this.#prepared(sql).get(projectId, type, key);
      return row && groupOf(row);
    });
  }

  groups(projectId: string, type: string, { after, limit, bytesMax }: Page): PageOf<Group> {
    return this.#read(() => {
      const sql = `SELECT ${groupColumns} FROM groups
        WHERE project_id = ? AND type = ? AND key > ? ORDER BY key LIMIT ?`;
      const rows = this.#prepared(sql).iterate(projectId, type, after ?? "", limit + 1);
      return pageOf(rows, { limit, bytesMax }, (row) => {
        const group = groupOf(row);
        return { result: group, bytes: group.propertiesJson.length, key: group.key };
      });
    });
  }

  groupTypes(projectId: string): string[] {
    const sql = "SELECT type FROM group_types WHERE project_id = ? ORDER BY type";
    return this.#all(sql, projectId).map(([type]) => type as string);
  }

  usage(projectId: string, { from, to }: { from: string; to: string }): UsageDay[] {
    const sql = `SELECT day, lane, class, events, duplicates FROM usage_daily
      WHERE project_id = ? AND day BETWEEN ? AND ? ORDER BY day, lane, class LIMIT ?`;
    return this.#all(sql, projectId, from, to, usageRowsMax).map((row) => ({
      day: row[0] as string,
      lane: row[1] as Lane,
      class: row[2] as UsageDay["class"],
      events: row[3] as number,
      duplicates: row[4] as number,
    }));
  }

  activePeople(
    projectId: string,
    { from, to }: { from: string; to: string },
  ): { day: string; estimate: number }[] {
    const sql = `SELECT day, estimate FROM active_ids
      WHERE project_id = ? AND day BETWEEN ? AND ? ORDER BY day`;
    return this.#all(sql, projectId, from, to).map(([day, estimate]) => ({
      day: day as string,
      estimate: estimate as number,
    }));
  }

  /** One more than the page has, if there are more. */
  spikes(projectId: string, fromMs: number, page: Page): Value[][] {
    const sql = `${selectSql(tables.spikes)}
      WHERE project_id = ? AND (started_at_ms, subject) > (?, ?)
      ORDER BY started_at_ms, subject LIMIT ?`;
    return this.#all(sql, projectId, ...spikesBegin(fromMs, page), page.limit + 1);
  }

  rejected(projectId: string | undefined, limit: number): Value[][] {
    const where = projectId === undefined ? "" : "WHERE project_id = ?";
    const sql = `${selectSql(tables.rejected)} ${where} ORDER BY id DESC LIMIT ?`;
    return this.#all(sql, ...(projectId === undefined ? [limit] : [projectId, limit]));
  }

  incidents(limit: number): Value[][] {
    return this.#all(newestIncidentsSql, limit);
  }

  positions(): { rows: Value[][]; trail: Value[][] } {
    return this.#read(() => this.#positions());
  }

  recording(): { rows: Value[][]; trail: Value[][]; runs: Value[][]; incidents: Value[][] } {
    return this.#read(() => ({
      ...this.#positions(),
      runs: this.#prepared(
        "SELECT stream, partition, epoch, from_sequence, to_sequence FROM runs ORDER BY id",
      ).all(),
      incidents: this.#prepared(newestIncidentsSql).all(recordedIncidentsMax).reverse(),
    }));
  }

  applied(): AppliedStream[] {
    const sql = `SELECT stream, lane, partition, epoch, sequence, watermark_ms FROM positions
      ORDER BY stream`;
    return this.#all(sql).map((row) => ({
      stream: row[0] as string,
      lane: row[1] as Lane,
      partition: row[2] as number,
      epoch: row[3] as number,
      sequence: row[4] as number,
      watermarkMs: row[5] as number,
    }));
  }

  totals(): Totals {
    const sql = `SELECT persons, groups,
      (SELECT count(*) FROM spikes WHERE ended_at_ms IS NULL),
      (SELECT coalesce(sum(total), 0) FROM rejected_totals),
      (SELECT coalesce(max(id), 0) FROM incidents) FROM totals`;
    const row = this.#all(sql)[0] ?? [];
    const [persons = 0, groups = 0, openSpikes = 0, rejected = 0, incidents = 0] = row as number[];
    return { persons, groups, openSpikes, rejected, incidents };
  }

  projects(): string[] {
    return this.#all(projectsSql).map(([id]) => id as string);
  }

  hasWriter(): boolean {
    return isWriterLocked(this.#file);
  }

  #positions(): { rows: Value[][]; trail: Value[][] } {
    return {
      rows: this.#prepared(`${selectSql(tables.positions)} ORDER BY stream`).all(),
      trail: this.#prepared(`${selectSql(tables.trail)} ORDER BY stream, sequence`).all(),
    };
  }

  /** The row of the person that this uuid answers for. */
  #personRow(projectId: string, uuid: Uint8Array): Value[] | undefined {
    const byUuid = this.#prepared(`${selectSql(tables.members)} WHERE project_id = ? AND uuid = ?`);
    let row = byUuid.get(projectId, uuid);
    while (row !== undefined && row[5] instanceof Uint8Array) row = byUuid.get(projectId, row[5]);
    return row;
  }

  #person(projectId: string, row: Value[]): Person {
    const [, , distinctId, , , , ownFirstId, ownFirstUuid] = row;
    const firstId = (ownFirstId ?? distinctId) as string;
    const distinctIdsTotal = row[16] as number;
    const ids = distinctIdsTotal > 1 ? this.#ids(projectId, bytesAt(row, 1), firstId) : [];
    return {
      uuid: uuidText(ownFirstUuid === null ? bytesAt(row, 1) : bytesAt(row, 7)),
      mainDistinctId: (row[10] as string | null) ?? firstId,
      distinctIds: distinctIdsTotal > 1 ? ids.slice(0, shownMax).map(({ id }) => id) : [firstId],
      distinctIdsTotal,
      propertiesJson: (row[19] as string | null) ?? "{}",
      known: row[13] === 1,
      createdAtMs: row[14] as number,
      lastSeenAtMs: row[15] as number,
      version: row[18] as number,
      mergedFrom: ids.slice(1).map(({ uuid }) => uuid),
    };
  }

  /** The first one, and those first seen after it. */
  #ids(projectId: string, uuid: Uint8Array, firstId: string): { id: string; uuid: string }[] {
    const sql = `${membersOfPerson} SELECT distinct_id, uuid FROM ids
      ORDER BY distinct_id <> ?3, first_ms, first_rank, distinct_id LIMIT ?4`;
    const rows = this.#prepared(sql).all(projectId, uuid, firstId, shownMax + 1);
    return rows.map((row) => ({ id: row[0] as string, uuid: uuidText(bytesAt(row, 1)) }));
  }

  #all(sql: string, ...values: Value[]): Value[][] {
    return this.#read(() => this.#prepared(sql).all(...values));
  }

  #read<Result>(work: () => Result): Result {
    this.#database ??= Database.forReading(this.#file);
    return this.#database.transaction("read", work);
  }

  #prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database!.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** `rows`: one more than the limit, if there are more. */
function pageOf<Result>(
  rows: Iterable<Value[]>,
  { limit, bytesMax }: Pick<Page, "limit" | "bytesMax">,
  read: (row: Value[]) => { result: Result; bytes: number; key: string },
): PageOf<Result> {
  const results: Result[] = [];
  let next: string | undefined;
  let sum = 0;
  for (const row of rows) {
    const { result, bytes, key } = read(row);
    sum += bytes;
    if (results.length > 0 && (results.length >= limit || sum > bytesMax)) return { results, next };
    results.push(result);
    next = key;
  }
  return { results, next: undefined };
}

function bytesAt(row: readonly Value[], index: number): Uint8Array {
  return row[index] as Uint8Array;
}

function linkOf(row: readonly Value[]): Link {
  return {
    a: row[0] as string,
    b: row[1] as string,
    kind: row[2] as string,
    atMs: row[3] as number,
    eventUuid: row[4] as string,
    outcome: row[5] as string,
  };
}

function groupOf(row: readonly Value[]): Group {
  return {
    type: row[0] as string,
    key: row[1] as string,
    propertiesJson: row[2] as string,
    createdAtMs: row[3] as number,
    updatedAtMs: row[4] as number,
    version: row[5] as number,
  };
}
