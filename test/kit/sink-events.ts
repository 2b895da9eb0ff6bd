import { askedClickHouse } from "./clickhouse-rows.ts";
import { askedOfParquet, positionsOfParquet } from "./parquet-rows.ts";
import { asked } from "./postgres-rows.ts";
import type { TestFrame } from "./stored-events.ts";

export const sinkSchema = "penstock";

/** A text that is not a UUID. The low byte of its first character is the code of an "a". */
export const almostUuid = "š199aaaa-0000-7000-8000-000000000001";

export function eventsIn(frames: readonly TestFrame[]): string[] {
  const lines = frames.flatMap(({ projectId, lane, events }) =>
    events.map(({ uuid, event = "seen", properties = {} }) => {
      return `${projectId} ${uuid} ${lane} ${event} ${shownProperties(properties)}`;
    }),
  );
  return [...new Set(lines)].sort();
}

export async function eventsAt(url: string): Promise<string[]> {
  const columns = "SELECT project_id, uuid, historical, event, properties";
  const rows = isClickHouse(url)
    ? await askedClickHouse(url, `${columns} FROM ${sinkSchema}.events FINAL`)
    : isParquet(url)
      ? await askedOfParquet(folderOf(url), `${columns} FROM events`)
      : await asked(url, `${columns} FROM ${sinkSchema}.events`);
  return rows
    .map(({ project_id: project, uuid, historical, event, properties }) => {
      const read = typeof properties === "string" ? JSON.parse(properties) : properties;
      const lane = historical === true || historical === 1 ? "historical" : "live";
      return [project, uuid, lane, event, shownProperties(read)].join(" ");
    })
    .sort();
}

export async function positionsAt(url: string): Promise<Record<string, number>> {
  if (isParquet(url)) return await positionsOfParquet(folderOf(url));
  const sql = `SELECT stream, max(sequence) AS sequence FROM ${sinkSchema}.positions GROUP BY stream`;
  const rows = isClickHouse(url) ? await askedClickHouse(url, sql) : await asked(url, sql);
  return Object.fromEntries(rows.map(({ stream, sequence }) => [stream, Number(sequence)]));
}

function shownProperties(properties: unknown): string {
  return JSON.stringify(sorted(properties));
}

export async function rejectedAt(url: string): Promise<{ count: number; places: number }> {
  const of = `${sinkSchema}.rejected`;
  const counts = "SELECT count(*) AS count, count(DISTINCT (stream, sequence, line)) AS places";
  const [row] = isClickHouse(url)
    ? await askedClickHouse(
        url,
        `SELECT count() AS count, uniqExact(stream, sequence, line) AS places FROM ${of} FINAL`,
      )
    : isParquet(url)
      ? await askedOfParquet(folderOf(url), `${counts} FROM rejected`)
      : await asked(url, `${counts} FROM ${of}`);
  return { count: Number(row?.["count"]), places: Number(row?.["places"]) };
}

/**
 * Returns the number of rows that are stored more than once and not merged yet. For Parquet files,
 * returns the number of events that a client sent again.
 */
export async function twiceAt(url: string): Promise<number> {
  if (isParquet(url)) {
    const sql = "SELECT count(*) - count(DISTINCT (project_id, uuid)) AS n FROM events";
    return Number((await askedOfParquet(folderOf(url), sql))[0]?.["n"]);
  }
  if (!isClickHouse(url)) return 0;
  const sql = `SELECT count() - uniqExact(stream, sequence, line) AS n FROM ${sinkSchema}.events`;
  return Number((await askedClickHouse(url, sql))[0]?.["n"]);
}

export function isClickHouse(url: string): boolean {
  return url.startsWith("http");
}

export function isParquet(url: string): boolean {
  return url.startsWith("parquet:");
}

export function folderOf(url: string): string {
  return url.slice("parquet:".length);
}

/** Sorts the members of objects, because databases return them in different orders. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
