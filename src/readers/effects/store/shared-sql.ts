// Limits and queries for both databases. Parameters are named `$1`, `$2` and so on.

import type { Row, Value } from "../../../platform/base/table.ts";
import { selectSql } from "../../../platform/postgres/arrays.ts";
import { personUuid } from "../people/person-uuid.ts";
import type { IncidentRow, OutboxRow, RejectedRow, SpikeRow } from "../types.ts";
import {
  type AppliedStream,
  type Group,
  type GroupName,
  type Page,
  type PageOf,
  type Person,
  projectsMax,
  type Totals,
  type UsageDay,
  usageRowsMax,
} from "./port.ts";
import {
  activeDayOf,
  appliedStreamOf,
  incidentOf,
  outboxOf,
  rejectedOf,
  shownGroupOf,
  spikeOf,
  usageDayOf,
} from "./rows/read-rows.ts";
import * as tables from "./rows/tables.ts";

/** Number of rejections that are retained per project. Up to `rejectedTrim` more may exist. */
export const rejectedRetained = 10_000;
const rejectedTrim = 1_000;

/** Maximum bytes of properties that one lookup returns. */
export const lookupBytesMax = 32 * 1_048_576;

export const linksMax = 10_000;
export const linksReadMax = 100_000;

export const trimOutboxSql = `DELETE FROM outbox
  WHERE id <= (SELECT id FROM outbox ORDER BY id DESC LIMIT 1 OFFSET $1)`;

export function isTrimDue(total: number, added: number): boolean {
  const isCrossed = Math.floor(total / rejectedTrim) > Math.floor((total - added) / rejectedTrim);
  return total > rejectedRetained && isCrossed;
}

export function rowsOfProjects(values: readonly Value[], width: number): Map<string, number> {
  const rows = new Map<string, number>();
  for (let at = 0; at < values.length; at += width) {
    const projectId = values[at] as string;
    rows.set(projectId, (rows.get(projectId) ?? 0) + 1);
  }
  return rows;
}

/** The query jumps from one project to the next, because reading all rows would be slow. */
const projectsSql = `WITH RECURSIVE found (project_id) AS (
    SELECT min(project_id) FROM usage_daily
    UNION ALL
    SELECT (
      SELECT min(u.project_id) FROM usage_daily AS u WHERE u.project_id > found.project_id
    ) FROM found WHERE found.project_id IS NOT NULL
  )
  SELECT project_id FROM found WHERE project_id IS NOT NULL LIMIT ${projectsMax}`;

interface Days {
  readonly from: string;
  readonly to: string;
}

export abstract class SharedReader {
  protected abstract all(sql: string, ...values: readonly Value[]): Promise<readonly Row[]>;

  abstract personByUuid(projectId: string, uuid: string): Promise<Person | undefined>;

  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined> {
    return this.personByUuid(projectId, personUuid(projectId, distinctId));
  }

  async group({ projectId, type, key }: GroupName): Promise<Group | undefined> {
    const sql = `${selectSql(tables.shownGroups)}
      WHERE project_id = $1 AND type = $2 AND key = $3`;
    const [row] = await this.all(sql, projectId, type, key);
    return row && shownGroupOf(row);
  }

  async groupTypes(projectId: string): Promise<readonly string[]> {
    const sql = "SELECT type FROM group_types WHERE project_id = $1 ORDER BY type";
    return (await this.all(sql, projectId)).map(([type]) => type as string);
  }

  async usage(projectId: string, { from, to }: Days): Promise<readonly UsageDay[]> {
    const sql = `${selectSql(tables.usageDays)}
      WHERE project_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day, lane, class LIMIT $4`;
    return (await this.all(sql, projectId, from, to, usageRowsMax)).map(usageDayOf);
  }

  async activePeople(
    projectId: string,
    { from, to }: Days,
  ): Promise<readonly { day: string; estimate: number }[]> {
    const sql = `${selectSql(tables.activeDays)}
      WHERE project_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day`;
    return (await this.all(sql, projectId, from, to)).map(activeDayOf);
  }

  async spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>> {
    const sql = `${selectSql(tables.spikes)}
      WHERE project_id = $1 AND (started_at_ms, subject) > ($2, $3)
      ORDER BY started_at_ms, subject LIMIT $4`;
    const rows = await this.all(sql, projectId, ...spikesBegin(fromMs, page), page.limit + 1);
    const results = rows.slice(0, page.limit).map(spikeOf);
    const last = results.at(-1);
    const hasMore = rows.length > page.limit && last !== undefined;
    return { results, next: hasMore ? `${last.startedAtMs} ${last.subject}` : undefined };
  }

  async rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]> {
    const where = projectId === undefined ? "" : "WHERE project_id = $2";
    const sql = `${selectSql(tables.rejected)} ${where} ORDER BY id DESC LIMIT $1`;
    const values = projectId === undefined ? [limit] : [limit, projectId];
    return (await this.all(sql, ...values)).map(rejectedOf);
  }

  async incidents(limit: number): Promise<readonly IncidentRow[]> {
    const sql = `${selectSql(tables.incidents)} ORDER BY id DESC LIMIT $1`;
    return (await this.all(sql, limit)).map(incidentOf);
  }

  async unpublished(): Promise<readonly OutboxRow[]> {
    return (await this.all(`${selectSql(tables.outbox)} ORDER BY id`)).map(outboxOf);
  }

  async installation(): Promise<string | undefined> {
    const [row] = await this.all("SELECT subject_prefix FROM installation");
    return row?.[0] as string | undefined;
  }

  async applied(): Promise<readonly AppliedStream[]> {
    const sql = `${selectSql(tables.appliedStreams)} ORDER BY stream`;
    return (await this.all(sql)).map(appliedStreamOf);
  }

  async projects(): Promise<readonly string[]> {
    return (await this.all(projectsSql)).map(([id]) => id as string);
  }
}

function spikesBegin(
  fromMs: number,
  { after }: Pick<Page, "after">,
): readonly [startedAtMs: number, subject: string] {
  if (after === undefined) return [fromMs, ""];
  const end = after.indexOf(" ");
  const startedAtMs = /^-?\d{1,15} /.test(after) ? Number(after.slice(0, end)) : Number.NaN;
  // If the cursor does not come from a page, the page is empty.
  if (Number.isNaN(startedAtMs)) return [Number.MAX_SAFE_INTEGER, ""];
  return startedAtMs < fromMs ? [fromMs, ""] : [startedAtMs, after.slice(end + 1)];
}

export function totalsOf(rows: readonly Row[]): Totals {
  const [persons = 0, groups = 0, openSpikes = 0, rejected = 0, incidents = 0] = (rows[0] ??
    []) as readonly number[];
  return { persons, groups, openSpikes, rejected, incidents };
}
