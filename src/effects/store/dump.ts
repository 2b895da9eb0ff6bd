// The dump: the whole state as lines of JSON text in a closed form, by which two stores, or a store
// and its rebuild, are compared byte for byte. It has no versions, runs or positions, and no place
// in a stream, because these depend on how frames fell together. It names tables and columns; a
// store asks for the rows in this order.

import { rowReader } from "../../base/table.ts";
import { dumpedPersons } from "./rows/tables.ts";

export interface DumpSection {
  readonly table: string;
  readonly columns: readonly DumpColumn[];
  /** Columns that the rows are sorted by: texts by their bytes in UTF-8, absent numbers first. */
  readonly order: readonly string[];
}

interface DumpColumn {
  readonly name: string;
  /** `json`: JSON text that is written as it is. */
  readonly type: "text" | "number" | "json";
}

/** Persons come first, by project and then by the uuid that is shown. */
export const dumpedPersonOf = rowReader(dumpedPersons);
export type DumpedPerson = ReturnType<typeof dumpedPersonOf>;

/** What comes after the persons, in this order. */
export const dumpSections: readonly DumpSection[] = [
  section("person_links", "project_id at_ms# event_uuid a b kind outcome"),
  section("groups", "project_id type key created_at_ms# updated_at_ms# properties:"),
  section("group_types", "project_id type"),
  section("group_members", "project_id type key distinct_id first_seen_at_ms#"),
  section("usage_daily", "project_id day lane class events# duplicates#"),
  section("active_ids", "project_id day estimate#"),
  section(
    "spikes",
    "project_id subject started_at_ms# ended_at_ms# peak_per_minute# baseline# threshold# events#",
  ),
  section("rejected", "project_id at_ms# event_uuid reason detail"),
  section("rejected_totals", "project_id total#"),
  section("incidents", "stream epoch# sequence# kind messages# detail"),
];

/** `ids`: all of them, sorted by their bytes in UTF-8; undefined: there is but the one. */
export function personLine(person: DumpedPerson, ids: readonly string[] | undefined): string {
  const { projectId, distinctId, firstId, mainId, known, createdAtMs, lastSeenAtMs } = person;
  const fields = JSON.stringify({
    project_id: projectId,
    uuid: person.firstUuid ?? person.uuid,
    main_distinct_id: mainId ?? firstId ?? distinctId,
    distinct_ids: ids ?? [distinctId],
    known: known === 1,
    created_at_ms: createdAtMs,
    last_seen_at_ms: lastSeenAtMs,
  });
  return `{"table":"persons",${fields.slice(1, -1)},"properties":${person.properties ?? "{}"}}`;
}

/** `values`: a row's, in the order of the section's columns. */
export function sectionLine(
  { table, columns }: DumpSection,
  values: readonly (string | number | null)[],
): string {
  let line = `{"table":"${table}"`;
  for (const [index, { name, type }] of columns.entries()) {
    const value = values[index] ?? null;
    line += `,"${name}":${type === "json" ? value : JSON.stringify(value)}`;
  }
  return `${line}}`;
}

/** Names of columns; `#` stands after a number's, `:` after the one of JSON text. */
function section(table: string, names: string): DumpSection {
  const columns = names.split(" ").map((name): DumpColumn => {
    if (name.endsWith("#")) return { name: name.slice(0, -1), type: "number" };
    if (name.endsWith(":")) return { name: name.slice(0, -1), type: "json" };
    return { name, type: "text" };
  });
  const order = columns.filter(({ type }) => type !== "json").map(({ name }) => name);
  return { table, columns, order };
}
