// The queries of the readers, in a separate thread. Each answer is read in one transaction.

import { statSync } from "node:fs";
import type { Row, Value } from "../../../../platform/base/table.ts";
import {
  type Group,
  idBytes,
  type Link,
  type Page,
  type PageOf,
  type Person,
  type ProjectIds,
  type ReachedStream,
  type StreamMessage,
} from "../port.ts";
import {
  firstIdOf,
  idsTotalOf,
  memberAt,
  personOf,
  reachedStreamOf,
  type StepRow,
  shownGroupOf,
  shownIdsMax,
  shownLinkOf,
  UuidWalk,
} from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";
import { linksMax, linksReadMax } from "../shared-sql.ts";
import { isWriterLocked, ReadingSide, type Statement } from "./database.ts";
import { numbered, selectSql, uuidBytes, uuidText, uuidTextsOf } from "./statements.ts";

const stepsMax = 10_000;
const membersOfPerson = `WITH RECURSIVE tree (uuid) AS (
    SELECT ?2
    UNION ALL
    SELECT m.uuid FROM tree CROSS JOIN members AS m INDEXED BY members_merged
    ON m.project_id = ?1 AND m.merged_into = tree.uuid
  ), ids AS (
    SELECT m.distinct_id, m.uuid, m.first_ms, m.first_rank FROM tree
    CROSS JOIN members AS m ON m.project_id = ?1 AND m.uuid = tree.uuid
  )`;

const withUuidTexts = uuidTextsOf(tables.members);
const linkColumns = tables.shownLinks.columns.join(", ");
const placeColumns = tables.placeColumns.join(", ");

export class SqliteQueries extends ReadingSide {
  all(sql: string, values: readonly Value[]): Value[][] {
    return this.read(() => this.prepared(numbered(sql)).all(...values));
  }

  personByUuid(projectId: string, uuid: string): Person | undefined {
    return this.read(() => {
      const row = this.#personRow(projectId, uuidBytes(uuid));
      return row && this.#person(projectId, row);
    });
  }

  persons(projectId: string, { after, limit, bytesMax }: Page): PageOf<Person> {
    return this.read(() => {
      const sql = `${selectSql(tables.members)}
        WHERE project_id = ? AND uuid > ? AND merged_into IS NULL ORDER BY uuid LIMIT ?`;
      const rows = this.prepared(sql).iterate(projectId, uuidBytes(after ?? ""), limit + 1);
      return pageOf(rows, { limit, bytesMax }, (stored) => {
        const row = withUuidTexts(stored);
        const person = this.#person(projectId, row);
        const bytes = person.propertiesJson.length + idBytes * person.distinctIdsTotal;
        return { result: person, bytes, key: row[memberAt.uuid] as string };
      });
    });
  }

  links(projectId: string, uuid: string): Link[] | undefined {
    return this.read(() => {
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
      const values = [projectId, uuidAt(row), linksMax, linksReadMax];
      return this.prepared(sql)
        .all(...values)
        .map(shownLinkOf);
    });
  }

  groups(projectId: string, type: string, { after, limit, bytesMax }: Page): PageOf<Group> {
    return this.read(() => {
      const sql = `${selectSql(tables.shownGroups)}
        WHERE project_id = ? AND type = ? AND key > ? ORDER BY key LIMIT ?`;
      const rows = this.prepared(sql).iterate(projectId, type, after ?? "", limit + 1);
      return pageOf(rows, { limit, bytesMax }, (row) => {
        const group = shownGroupOf(row);
        return { result: group, bytes: group.propertiesJson.length, key: group.key };
      });
    });
  }

  positions(): { rows: Value[][]; trail: Value[][] } {
    return this.read(() => ({
      rows: this.prepared(`${selectSql(tables.positions)} ORDER BY stream`).all(),
      trail: this.prepared(`${selectSql(tables.trail)} ORDER BY stream, sequence`).all(),
    }));
  }

  reached(messages: readonly StreamMessage[]): ReachedStream[] {
    return this.#once(() => reachedIn((sql) => this.prepared(sql), messages));
  }

  personUuids(ids: readonly ProjectIds[]): (string | null)[] {
    return this.#once(() => uuidsIn((sql) => this.prepared(sql), ids));
  }

  version(): string {
    const inode = statSync(this.file, { throwIfNoEntry: false })?.ino;
    const [commit] = this.#once(() => this.prepared("SELECT last_commit FROM writer").get()) ?? [];
    return `${inode}:${commit}`;
  }

  hasWriter(): boolean {
    return isWriterLocked(this.file);
  }

  #personRow(projectId: string, uuid: Uint8Array): Value[] | undefined {
    const byUuid = this.prepared(`${selectSql(tables.members)} WHERE project_id = ? AND uuid = ?`);
    let row = byUuid.get(projectId, uuid);
    for (let steps = 0; steps <= stepsMax; steps++) {
      const next = row?.[memberAt.merged_into] ?? null;
      if (next === null) return row && withUuidTexts(row);
      row = byUuid.get(projectId, next);
    }
    return undefined;
  }

  #person(projectId: string, row: Row): Person {
    return personOf(row, idsTotalOf(row) > 1 ? this.#ids(projectId, row) : []);
  }

  #ids(projectId: string, row: Row): { id: string; uuid: string }[] {
    const sql = `${membersOfPerson} SELECT distinct_id, uuid FROM ids
      ORDER BY distinct_id <> ?3, first_ms, first_rank, distinct_id LIMIT ?4`;
    const values = [projectId, uuidAt(row), firstIdOf(row), shownIdsMax + 1];
    const rows = this.prepared(sql).all(...values);
    return rows.map(([id, uuid]) => ({ id: id as string, uuid: uuidText(uuid as Uint8Array) }));
  }

  /** Opens the file for one call. If the file stayed open, a rebuild could not replace it. */
  #once<Answer>(work: () => Answer): Answer {
    this.close();
    try {
      return this.read(work);
    } finally {
      this.close();
    }
  }
}

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

function uuidAt(row: Row): Uint8Array {
  return uuidBytes(row[memberAt.uuid] as string);
}

type Prepare = (sql: string) => Statement;

const reachedSql = `SELECT p.stream, p.epoch, p.created, p.sequence, t.message_id
  FROM positions AS p LEFT JOIN position_trail AS t ON t.stream = p.stream AND t.sequence = ?2
  WHERE p.stream = ?1`;

const stepsSql = `SELECT wanted.key, found.first_uuid, found.merged_into
  FROM json_each(?2) AS wanted CROSS JOIN members AS found
  ON found.project_id = ?1 AND found.uuid = unhex(wanted.value, '-')`;

function reachedIn(prepare: Prepare, messages: readonly StreamMessage[]): ReachedStream[] {
  return messages.flatMap(({ stream, sequence }) => {
    const row = prepare(reachedSql).get(stream, sequence);
    return row === undefined ? [] : [reachedStreamOf(row)];
  });
}

function uuidsIn(prepare: Prepare, ids: readonly ProjectIds[]): (string | null)[] {
  const shown: (string | null)[] = [];
  for (const one of ids) {
    const walk = new UuidWalk([one]);
    while (walk.steps.length > 0) {
      const uuids = JSON.stringify(walk.steps.map(({ uuid }) => uuid));
      walk.take(stepRows(prepare(stepsSql).iterate(one.projectId, uuids)));
    }
    for (const uuid of walk.shown) shown.push(uuid);
  }
  return shown;
}

function* stepRows(rows: Iterable<readonly Value[]>): Generator<StepRow> {
  for (const [step, firstUuid, mergedInto] of rows)
    yield [step as number, textOf(firstUuid), textOf(mergedInto)];
}

function textOf(uuid: Value | undefined): string | null {
  return uuid instanceof Uint8Array ? uuidText(uuid) : null;
}
