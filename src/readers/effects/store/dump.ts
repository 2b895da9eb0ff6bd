// Yields the whole state as sorted lines of JSON, so that two stores can be compared. The dump does
// not contain versions and positions, because they depend on the batching.

import { rowReader } from "../../../platform/base/table.ts";
import { dumpedPersons } from "./rows/tables.ts";

export type DumpKind =
  | "all"
  /**
   * The part of the dump that does not depend on the order in which streams were read. It includes
   * the ids of links that were refused because of other links (`refused_links`).
   */
  | "lasting";

interface DumpSection {
  readonly name: string;
  readonly table: string;
  readonly where?: string;
  readonly columns: readonly DumpColumn[];
  readonly order: readonly string[];
}

interface DumpColumn {
  readonly name: string;
  readonly type: "text" | "number" | "json";
}

export const dumpedPersonOf = rowReader(dumpedPersons);
export type DumpedPerson = ReturnType<typeof dumpedPersonOf>;

const links: readonly DumpSection[] = [
  section("person_links", "project_id at_ms# event_uuid a b kind outcome"),
];
const lastingLinks: readonly DumpSection[] = [
  {
    ...section("person_links", "project_id a b kind"),
    where: "outcome <> 'refused_self'",
  },
  {
    ...section("person_links", "project_id a b"),
    name: "refused_links",
    where: "outcome IN ('refused_both_known', 'refused_cap')",
  },
];
const facts: readonly DumpSection[] = [
  section("groups", "project_id type key created_at_ms# updated_at_ms# properties:"),
  section("group_types", "project_id type"),
  section("group_members", "project_id type key distinct_id first_seen_at_ms#"),
  section("usage_daily", "project_id day lane class events# duplicates#"),
  section("active_ids", "project_id day estimate#"),
  section(
    "spikes",
    "project_id subject started_at_ms# ended_at_ms# peak_per_minute# baseline# threshold# events#",
  ),
];
const diagnostics: readonly DumpSection[] = [
  section("rejected", "project_id at_ms# event_uuid reason detail"),
  section("rejected_totals", "project_id total#"),
  section("incidents", "stream epoch# sequence# kind messages# detail"),
];

export const dumpSections: Readonly<Record<DumpKind, readonly DumpSection[]>> = {
  all: [...links, ...facts, ...diagnostics],
  lasting: [...lastingLinks, ...facts],
};

export function sectionSql({ table, columns, order, where }: DumpSection, nulls: string): string {
  const names = columns.map(({ name }) => name).join(", ");
  const which = where === undefined ? "" : `WHERE ${where}`;
  const sorted = order.map((name) => `${name}${nulls}`).join(", ");
  const distinct = where === undefined ? "" : "DISTINCT ";
  return `SELECT ${distinct}${names} FROM ${table} ${which} ORDER BY ${sorted}`;
}

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

export function sectionLine(
  { name: called, columns }: DumpSection,
  values: readonly (string | number | null)[],
): string {
  let line = `{"table":"${called}"`;
  for (const [index, { name, type }] of columns.entries()) {
    const value = values[index] ?? null;
    line += `,"${name}":${type === "json" ? value : JSON.stringify(value)}`;
  }
  return `${line}}`;
}

/** Returns a section. The suffix `#` of a name marks a number, and `:` marks JSON text. */
function section(table: string, names: string): DumpSection {
  const columns = names.split(" ").map((name): DumpColumn => {
    if (name.endsWith("#")) return { name: name.slice(0, -1), type: "number" };
    if (name.endsWith(":")) return { name: name.slice(0, -1), type: "json" };
    return { name, type: "text" };
  });
  const order = columns.filter(({ type }) => type !== "json").map(({ name }) => name);
  return { name: table, table, columns, order };
}
