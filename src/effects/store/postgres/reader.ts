// The port's reader on PostgreSQL. Also for a process beside the writer's, such as a command: it
// takes no lock, and makes no tables.

import type { ClientBase } from "pg";
import type { Lane } from "../../../base/types.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type { IncidentRow, Position, Recording, RejectedRow, SpikeRow } from "../../types.ts";
import {
  type AppliedStream,
  type EffectsReader,
  type Group,
  type GroupName,
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
import { incidentOf, type Row, rejectedOf, runOf, spikeOf } from "../rows/read-rows.ts";
import type { Table, Value } from "../rows/tables.ts";
import * as tables from "../rows/tables.ts";
import { spikePage, spikesBegin } from "../spike-page.ts";
import { readAddress } from "./address.ts";
import { columnsSql } from "./arrays.ts";
import { dumpLines } from "./dump-lines.ts";
import { cutPage, pageSql } from "./pages.ts";
import { linksOf, personByUuid, personsPage } from "./people.ts";
import { readPositions } from "./positions.ts";
import { ReaderPool } from "./reader-pool.ts";
import { selectRows } from "./select-rows.ts";
import { holdersSql } from "./session.ts";

interface Days {
  readonly from: string;
  readonly to: string;
}

const newestIncidentsSql = `${selectSql(tables.incidents)} ORDER BY id DESC LIMIT $1`;
const groupColumns = ["type", "key", "properties", "created_at_ms", "updated_at_ms", "version"];

export class PostgresReader implements EffectsReader {
  readonly #pool: ReaderPool;

  /** Throws a StoreError where the URL is none. Connects with the first question. */
  constructor({ url }: { readonly url: string }) {
    this.#pool = new ReaderPool(readAddress(url));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined> {
    return this.personByUuid(projectId, personUuid(projectId, distinctId));
  }

  personByUuid(projectId: string, uuid: string): Promise<Person | undefined> {
    return this.#pool.read((client) => personByUuid(client, projectId, uuid));
  }

  persons(projectId: string, page: Page): Promise<PageOf<Person>> {
    return this.#pool.read((client) => personsPage(client, projectId, page));
  }

  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined> {
    return this.#pool.read((client) => linksOf(client, projectId, uuid));
  }

  async group({ projectId, type, key }: GroupName): Promise<Group | undefined> {
    const sql = `SELECT ${columnsSql(groupColumns)} FROM groups
      WHERE project_id = $1 AND type = $2 AND key = $3`;
    const [row] = await this.#all(sql, projectId, type, key);
    return row && groupOf(row);
  }

  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>> {
    return this.#pool.read((client) => groupsPage(client, [projectId, type], page));
  }

  async groupTypes(projectId: string): Promise<readonly string[]> {
    const sql = "SELECT type FROM group_types WHERE project_id = $1 ORDER BY type";
    return (await this.#all(sql, projectId)).map(([type]) => type as string);
  }

  async usage(projectId: string, { from, to }: Days): Promise<readonly UsageDay[]> {
    const sql = `SELECT day, lane, class, events, duplicates FROM usage_daily
      WHERE project_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day, lane, class LIMIT $4`;
    return (await this.#all(sql, projectId, from, to, usageRowsMax)).map((row) => ({
      day: row[0] as string,
      lane: row[1] as Lane,
      class: row[2] as UsageDay["class"],
      events: row[3] as number,
      duplicates: row[4] as number,
    }));
  }

  async activePeople(
    projectId: string,
    { from, to }: Days,
  ): Promise<readonly { day: string; estimate: number }[]> {
    const sql = `SELECT day, estimate FROM active_ids
      WHERE project_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day`;
    return (await this.#all(sql, projectId, from, to)).map(([day, estimate]) => ({
      day: day as string,
      estimate: estimate as number,
    }));
  }

  async spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>> {
    const sql = `${selectSql(tables.spikes)}
      WHERE project_id = $1 AND (started_at_ms, subject) > ($2, $3)
      ORDER BY started_at_ms, subject LIMIT $4`;
    const begin = spikesBegin(fromMs, page);
    return spikePage(
      (await this.#all(sql, projectId, ...begin, page.limit + 1)).map(spikeOf),
      page,
    );
  }

  async rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]> {
    const where = projectId === undefined ? "" : "WHERE project_id = $2";
    const sql = `${selectSql(tables.rejected)} ${where} ORDER BY id DESC LIMIT $1`;
    const values = projectId === undefined ? [limit] : [limit, projectId];
    return (await this.#all(sql, ...values)).map(rejectedOf);
  }

  async incidents(limit: number): Promise<readonly IncidentRow[]> {
    return (await this.#all(newestIncidentsSql, limit)).map(incidentOf);
  }

  positions(): Promise<readonly Position[]> {
    return this.#pool.read(readPositions);
  }

  async applied(): Promise<readonly AppliedStream[]> {
    const sql = `SELECT stream, lane, partition, epoch, sequence, watermark_ms FROM positions
      ORDER BY stream`;
    return (await this.#all(sql)).map((row) => ({
      stream: row[0] as string,
      lane: row[1] as Lane,
      partition: row[2] as number,
      epoch: row[3] as number,
      sequence: row[4] as number,
      watermarkMs: row[5] as number,
    }));
  }

  async totals(): Promise<Totals> {
    const sql = `SELECT persons, groups,
      (SELECT count(*) FROM spikes WHERE ended_at_ms IS NULL), rejected, incidents FROM totals`;
    const [row = []] = (await this.#all(sql)) as readonly (readonly number[])[];
    const [persons = 0, groups = 0, openSpikes = 0, rejected = 0, incidents = 0] = row;
    return { persons, groups, openSpikes, rejected, incidents };
  }

  async projects(): Promise<readonly string[]> {
    return (await this.#all(projectsSql)).map(([id]) => id as string);
  }

  async hasWriter(): Promise<boolean> {
    return (await this.#all(holdersSql)).length > 0;
  }

  recording(): Promise<Recording> {
    const sql = "SELECT stream, partition, epoch, from_sequence, to_sequence FROM runs ORDER BY id";
    return this.#pool.read(async (client) => {
      const positions = await readPositions(client);
      const runs = (await selectRows(client, sql)).map(runOf);
      const incidents = await selectRows(client, newestIncidentsSql, [recordedIncidentsMax]);
      return { positions, runs, incidents: incidents.reverse().map(incidentOf) };
    });
  }

  dump(): AsyncIterable<string> {
    return dumpLines(this.#pool);
  }

  #all(sql: string, ...values: Value[]): Promise<Row[]> {
    return this.#pool.read((client) => selectRows(client, sql, values));
  }
}

async function groupsPage(
  client: ClientBase,
  [projectId, type]: readonly [string, string],
  { after, limit, bytesMax }: Page,
): Promise<PageOf<Group>> {
  const where = "project_id = $1 AND key > $4 AND type = $5";
  const sql = pageSql({ columns: groupColumns, from: "groups", where, key: "key" });
  const values = [projectId, limit + 1, bytesMax, after ?? "", type];
  const rows = await selectRows(client, sql, values);
  return await cutPage(rows, { limit, bytesMax }, async (row) => {
    const group = groupOf(row);
    return { result: group, bytes: group.propertiesJson.length, key: group.key };
  });
}

function selectSql({ name, columns }: Table): string {
  return `SELECT ${columnsSql(columns)} FROM ${name}`;
}

function groupOf(row: Row): Group {
  return {
    type: row[0] as string,
    key: row[1] as string,
    propertiesJson: row[2] as string,
    createdAtMs: row[3] as number,
    updatedAtMs: row[4] as number,
    version: row[5] as number,
  };
}
