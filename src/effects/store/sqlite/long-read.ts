// The read that takes long, the dump: in a thread and a transaction of its own, given out batch by
// batch. While one is under way, the database's log cannot be cut short.

import { dumpSections, personLine, sectionLine } from "../dump.ts";
import { Database, uuidText } from "./database.ts";

const batchRowsMax = 1_000;
const batchCharactersMax = 4 * 1024 * 1024;

export class SqliteLongRead {
  readonly #database: Database;
  #lines: Iterator<string> | undefined;

  constructor(file: string) {
    this.#database = Database.forReading(file);
    this.#database.begin();
  }

  close(): void {
    this.#database.close();
  }

  /** The next lines of the dump; none at its end. */
  dump(): string[] {
    this.#lines ??= dumpLines(this.#database);
    return batchOf(this.#lines, (line) => line.length);
  }
}

function batchOf<Item>(items: Iterator<Item>, charactersOf: (item: Item) => number): Item[] {
  const batch: Item[] = [];
  let characters = 0;
  while (batch.length < batchRowsMax && characters < batchCharactersMax) {
    const { value, done } = items.next();
    if (done === true) break;
    characters += charactersOf(value);
    batch.push(value);
  }
  return batch;
}

function* dumpLines(database: Database): Generator<string> {
  yield* personLines(database);
  for (const section of dumpSections) {
    const columns = section.columns.map(({ name }) => name).join(", ");
    const sql = `SELECT ${columns} FROM ${section.table} ORDER BY ${section.order.join(", ")}`;
    for (const row of database.prepare(sql).iterate())
      yield sectionLine(section, row as (string | number | null)[]);
  }
}

function* personLines(database: Database): Generator<string> {
  // Properties are many times as long as what is sorted, and sorting writes all it has to a file.
  const sorted = database.prepare(`
    SELECT id FROM members WHERE merged_into IS NULL
    ORDER BY project_id, coalesce(first_uuid, uuid)`);
  const person = database.prepare(`
    SELECT project_id, uuid, coalesce(first_uuid, uuid), distinct_id,
      coalesce(main_id, first_id, distinct_id), known, created_at_ms, last_seen_at_ms, ids_total,
      coalesce(properties, '{}')
    FROM members WHERE id = ?`);
  const ids = database.prepare(`
    WITH RECURSIVE tree (uuid, distinct_id) AS (
      SELECT ?2, ?3
      UNION ALL
      SELECT m.uuid, m.distinct_id FROM tree CROSS JOIN members AS m INDEXED BY members_merged
      ON m.project_id = ?1 AND m.merged_into = tree.uuid
    ) SELECT distinct_id FROM tree ORDER BY distinct_id`);
  for (const [id] of sorted.iterate()) {
    const row = person.get(id!) ?? [];
    const [projectId, uuid, shown, distinctId, mainId, known, created, lastSeen, total, json] = row;
    const several = (total as number) > 1;
    yield personLine({
      projectId: projectId as string,
      uuid: uuidText(shown as Uint8Array),
      mainDistinctId: mainId as string,
      distinctIds: several
        ? ids.all(projectId!, uuid!, distinctId!).map(([id]) => id as string)
        : [distinctId as string],
      known: known === 1,
      createdAtMs: created as number,
      lastSeenAtMs: lastSeen as number,
      propertiesJson: json as string,
    });
  }
}
