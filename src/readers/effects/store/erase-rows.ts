// Removes persons from the database. The erasure changes the number of the last commit. The
// database then rejects the next commit of a running writer, and the writer starts again from the
// database.

import { randomInt } from "node:crypto";
import type { Value } from "../../../platform/base/table.ts";
import { personUuid } from "../people/person-uuid.ts";
import { largeBytesMin } from "../people/property-bag.ts";
import { activityWithout, hotIdSubject } from "../spikes/project-activity.ts";
import { tablesOfProjects } from "./rows/tables.ts";

export interface ErasingSql {
  readonly textType: string;
  uuid(parameter: string): string;
  run(sql: string, values?: readonly Value[]): Promise<number>;
  all(sql: string, values?: readonly Value[]): Promise<readonly (readonly Value[])[]>;
}

export interface ErasedPeople {
  readonly ids: readonly string[];
  readonly persons: number;
  readonly links: number;
  readonly groupMembers: number;
  readonly spikes: number;
  readonly rejected: number;
  readonly announcements: number;
  readonly remains: readonly string[];
}

/** Erases persons. Each call opens a connection, and rejects with a StoreError if this fails. */
export interface PeopleErasure {
  idsOf(projectId: string, ids: readonly string[]): Promise<string[]>;
  /** Erases the persons in one transaction. If it rejects, nothing is erased. */
  erase(projectId: string, ids: readonly string[]): Promise<ErasedPeople>;
  /** Returns whether a table has rows of the project. */
  hasProject(projectId: string): Promise<boolean>;
  eraseProject(projectId: string): Promise<ErasedProject>;
}

export interface ErasedProject {
  readonly persons: number;
  readonly groups: number;
  readonly rows: number;
  readonly remains: readonly string[];
}

/** Returns a new commit number. It is negative, so it differs from all numbers of writers. */
function erasureNumber(): number {
  return -randomInt(1, 2 ** 48 - 1);
}

export async function idsOfPersons(
  sql: ErasingSql,
  projectId: string,
  ids: readonly string[],
): Promise<string[]> {
  const found = new Set<string>();
  const columns = "project_id, uuid, merged_into, distinct_id";
  for (const id of ids) {
    if (found.has(id)) continue;
    const rows = await sql.all(
      `WITH RECURSIVE up AS (
         SELECT ${columns} FROM members WHERE project_id = $1 AND uuid = ${sql.uuid("$2")}
         UNION ALL
         SELECT m.project_id, m.uuid, m.merged_into, m.distinct_id FROM up
         JOIN members AS m ON m.project_id = up.project_id AND m.uuid = up.merged_into
       ), down AS (
         SELECT ${columns} FROM up WHERE merged_into IS NULL
         UNION ALL
         SELECT m.project_id, m.uuid, m.merged_into, m.distinct_id FROM down
         JOIN members AS m ON m.project_id = down.project_id AND m.merged_into = down.uuid
       ) SELECT distinct_id FROM down`,
      [projectId, personUuid(projectId, id)],
    );
    for (const [one] of rows) found.add(one as string);
  }
  return [...found].sort();
}

/** Erases the persons of the ids. The caller must commit the transaction. */
export async function eraseRows(
  sql: ErasingSql,
  projectId: string,
  wanted: readonly string[],
): Promise<ErasedPeople> {
  // This statement must be first, so that a writer and this transaction wait for each other.
  await sql.run("UPDATE writer SET last_commit = $1", [erasureNumber()]);
  const ids = await idsOfPersons(sql, projectId, wanted);
  const all = new Set([...ids, ...wanted]);
  await sql.run(`CREATE TEMP TABLE gone (distinct_id ${sql.textType} PRIMARY KEY)`);
  for (const id of all) await sql.run("INSERT INTO gone VALUES ($1)", [id]);
  const remove = (table: string, which: string) =>
    sql.run(`DELETE FROM ${table} WHERE project_id = $1 AND (${which})`, [projectId]);
  const listed = "(SELECT distinct_id FROM gone)";
  const links = await remove("person_links", `a IN ${listed} OR b IN ${listed}`);
  const groupMembers = await remove("group_members", `distinct_id IN ${listed}`);
  let persons = 0;
  let largeBytes = 0;
  for (const id of ids) {
    const key = [projectId, personUuid(projectId, id)];
    const which = `project_id = $1 AND uuid = ${sql.uuid("$2")}`;
    const found = `SELECT property_bytes FROM members WHERE ${which} AND merged_into IS NULL`;
    for (const [bytes] of await sql.all(found, key)) {
      persons++;
      if (Number(bytes) > largeBytesMin) largeBytes += Number(bytes);
    }
    await sql.run(`DELETE FROM members WHERE ${which}`, key);
  }
  if (persons > 0) await sql.run("UPDATE totals SET persons = persons - $1", [persons]);
  const less = "UPDATE large_properties SET bytes = bytes - $2 WHERE project_id = $1";
  if (largeBytes > 0) await sql.run(less, [projectId, largeBytes]);
  let spikes = 0;
  for (const id of all) {
    const key = [projectId, hotIdSubject(id)];
    spikes += await sql.run("DELETE FROM spikes WHERE project_id = $1 AND subject = $2", key);
  }
  const counts = { links, groupMembers, persons, spikes };
  const rejected =
    (await remove("rejected", `distinct_id IN ${listed}`)) +
    (await eraseUnowned(sql, projectId, all));
  const announcements = await eraseMemory(sql, projectId, all);
  await sql.run("DROP TABLE gone");
  return { ids, ...counts, rejected, announcements, remains: [] };
}

export async function hasProjectRows(sql: ErasingSql, projectId: string): Promise<boolean> {
  for (const { name } of tablesOfProjects) {
    const query = `SELECT 1 FROM ${name} WHERE project_id = $1 LIMIT 1`;
    if ((await sql.all(query, [projectId])).length > 0) return true;
  }
  return false;
}

/** Erases all rows of a project. The caller must commit the transaction. */
export async function eraseProjectRows(sql: ErasingSql, projectId: string): Promise<ErasedProject> {
  await sql.run("UPDATE writer SET last_commit = $1", [erasureNumber()]);
  const which = "WHERE project_id = $1";
  const count = async (from: string) =>
    Number((await sql.all(`SELECT count(*) FROM ${from}`, [projectId]))[0]?.[0] ?? 0);
  const persons = await count(`members ${which} AND merged_into IS NULL`);
  const groups = await count(`groups ${which}`);
  let rows = 0;
  for (const { name } of tablesOfProjects)
    rows += await sql.run(`DELETE FROM ${name} ${which}`, [projectId]);
  for (const [id, json] of await sql.all("SELECT id, json FROM outbox"))
    if ((JSON.parse(json as string) as { project?: unknown }).project === projectId)
      rows += await sql.run("DELETE FROM outbox WHERE id = $1", [id!]);
  const less = "UPDATE totals SET persons = persons - $1, groups = groups - $2";
  await sql.run(less, [persons, groups]);
  return { persons, groups, rows, remains: [] };
}

/**
 * Removes rejections that have no distinct id but contain one of the ids in their text. In the
 * text, the id is in quotes or after a colon.
 */
async function eraseUnowned(
  sql: ErasingSql,
  projectId: string,
  ids: ReadonlySet<string>,
): Promise<number> {
  const which = "WHERE project_id = $1 AND distinct_id IS NULL";
  const rows = await sql.all(`SELECT id, detail FROM rejected ${which}`, [projectId]);
  const names = [...ids].map((id) => ({ id, quoted: JSON.stringify(id) }));
  let removed = 0;
  for (const [row, detail] of rows) {
    const text = detail as string;
    const last = text.slice(text.indexOf(": ") + 2);
    const isNamed = names.some(
      ({ id, quoted }) =>
        last === id ||
        text.includes(quoted) ||
        (last.includes(" or ") && (last.startsWith(`${id} or `) || last.endsWith(` or ${id}`))),
    );
    if (isNamed) removed += await sql.run("DELETE FROM rejected WHERE id = $1", [row!]);
  }
  return removed;
}

async function eraseMemory(
  sql: ErasingSql,
  projectId: string,
  ids: ReadonlySet<string>,
): Promise<number> {
  const which = "WHERE project_id = $1";
  for (const [state] of await sql.all(`SELECT state FROM activity ${which}`, [projectId])) {
    const without = activityWithout(state as string, ids);
    if (without !== state)
      await sql.run(`UPDATE activity SET state = $2 ${which}`, [projectId, without]);
  }
  const subjects = new Set([...ids].map(hotIdSubject));
  let removed = 0;
  for (const [id, json] of await sql.all("SELECT id, json FROM outbox")) {
    const news = JSON.parse(json as string) as { project?: unknown; subject?: unknown };
    if (news.project !== projectId || !subjects.has(String(news.subject))) continue;
    removed += await sql.run("DELETE FROM outbox WHERE id = $1", [id!]);
  }
  return removed;
}
