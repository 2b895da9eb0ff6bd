// Reads the dump in a separate thread and in one transaction. During this time, SQLite cannot
// truncate the write-ahead log.

import {
  type DumpKind,
  dumpedPersonOf,
  dumpSections,
  personLine,
  sectionLine,
  sectionSql,
} from "../dump.ts";
import { dumpedPersons } from "../rows/tables.ts";
import { Database } from "./database.ts";
import { selectSql, uuidTextsOf } from "./statements.ts";

const batchRowsMax = 1_000;
const batchCharactersMax = 4 * 1024 * 1024;
const withUuidTexts = uuidTextsOf(dumpedPersons);

export class SqliteLongRead {
  readonly #database: Database;
  #lines: Iterator<string> | undefined;

  constructor(file: string) {
    this.#database = Database.forReading(file);
    this.#database.exec("BEGIN");
  }

  close(): void {
    this.#database.close();
  }

  dump(kind: DumpKind): string[] {
    this.#lines ??= dumpLines(this.#database, kind);
    const batch: string[] = [];
    let characters = 0;
    while (batch.length < batchRowsMax && characters < batchCharactersMax) {
      const { value, done } = this.#lines.next();
      if (done === true) break;
      characters += value.length;
      batch.push(value);
    }
    return batch;
  }
}

function* dumpLines(database: Database, kind: DumpKind): Generator<string> {
  yield* personLines(database);
  for (const section of dumpSections[kind]) {
    for (const row of database.prepare(sectionSql(section, "")).iterate())
      yield sectionLine(section, row as (string | number | null)[]);
  }
}

function* personLines(database: Database): Generator<string> {
  // The query sorts only ids, because a sort writes all selected columns to a temporary file.
  const sorted = database.prepare(`
    SELECT id FROM members WHERE merged_into IS NULL
    ORDER BY project_id, coalesce(first_uuid, uuid)`);
  const personById = database.prepare(`${selectSql(dumpedPersons)} WHERE id = ?`);
  const ids = database.prepare(`
    WITH RECURSIVE tree (uuid, distinct_id) AS (
      SELECT ?2, ?3
      UNION ALL
      SELECT m.uuid, m.distinct_id FROM tree CROSS JOIN members AS m INDEXED BY members_merged
      ON m.project_id = ?1 AND m.merged_into = tree.uuid
    ) SELECT distinct_id FROM tree ORDER BY distinct_id`);
  for (const [id] of sorted.iterate()) {
    const row = personById.get(id!) ?? [];
    const [projectId, uuid, distinctId] = row as [string, Uint8Array, string];
    const person = dumpedPersonOf(withUuidTexts(row));
    const isOne = (person.idsTotal ?? 1) <= 1;
    const all = isOne
      ? undefined
      : ids.all(projectId, uuid, distinctId).map(([id]) => id as string);
    yield personLine(person, all);
  }
}
