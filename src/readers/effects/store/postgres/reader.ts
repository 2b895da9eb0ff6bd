import type { ClientBase } from "pg";
import type { Row, Value } from "../../../../platform/base/table.ts";
import { readAddress } from "../../../../platform/postgres/address.ts";
import { arrayOf, selectSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import type { Position } from "../../types.ts";
import type { DumpKind } from "../dump.ts";
import type {
  EffectsReader,
  Group,
  Link,
  Page,
  PageOf,
  Person,
  ProjectIds,
  ReachedStream,
  StreamMessage,
  Totals,
} from "../port.ts";
import {
  positionsOf,
  reachedStreamOf,
  type StepRow,
  shownGroupOf,
  UuidWalk,
} from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";
import { SharedReader, totalsOf } from "../shared-sql.ts";
import { dumpLines } from "./dump-lines.ts";
import { cutPage, linksOf, pageRows, personByUuid, personsPage } from "./people.ts";
import { ReaderPool } from "./reader-pool.ts";
import { holdersSql } from "./session.ts";

export class PostgresReader extends SharedReader implements EffectsReader {
  readonly #pool: ReaderPool;

  /** The connection is opened at the first query. Throws a StoreError if the URL is invalid. */
  constructor({ url, longStatementMsMax }: { url: string; longStatementMsMax?: number }) {
    super();
    this.#pool = new ReaderPool(readAddress(url), longStatementMsMax);
  }

  close(): Promise<void> {
    return this.#pool.close();
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

  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>> {
    return this.#pool.read((client) => groupsPage(client, [projectId, type], page));
  }

  positions(): Promise<readonly Position[]> {
    return this.#pool.read(readPositions);
  }

  reached(messages: readonly StreamMessage[]): Promise<readonly ReachedStream[]> {
    return this.#pool.read((client) => reachedIn(client, messages));
  }

  personUuids(ids: readonly ProjectIds[]): Promise<readonly (string | null)[]> {
    return this.#pool.read((client) => uuidsIn(client, ids));
  }

  async version(): Promise<string> {
    const [row] = await this.all("SELECT last_commit FROM writer");
    return String(row?.[0]);
  }

  async totals(): Promise<Totals> {
    const sql = `SELECT persons, groups,
      (SELECT count(*) FROM spikes WHERE ended_at_ms IS NULL), rejected, incidents FROM totals`;
    return totalsOf(await this.all(sql));
  }

  async hasWriter(): Promise<boolean> {
    return (await this.all(holdersSql)).length > 0;
  }

  dump(kind: DumpKind = "all"): AsyncIterable<string> {
    return dumpLines(this.#pool, kind);
  }

  protected all(sql: string, ...values: readonly Value[]): Promise<Row[]> {
    return this.#pool.read((client) => selectRows(client, sql, values));
  }
}

async function groupsPage(
  client: ClientBase,
  [projectId, type]: readonly [string, string],
  { after, limit, bytesMax }: Page,
): Promise<PageOf<Group>> {
  const where = "project_id = $1 AND type = $4";
  const query = { table: tables.shownGroups, where, key: "key", projectId, values: [type] };
  const rows = pageRows(client, query, { after, limit, bytesMax });
  return await cutPage(rows, { limit, bytesMax }, async (row) => {
    const group = shownGroupOf(row);
    return { result: group, bytes: group.propertiesJson.length, key: group.key };
  });
}

/** Returns the positions. The caller needs a snapshot, or must be the only writer. */
export async function readPositions(client: ClientBase): Promise<Position[]> {
  const { positions, trail } = tables;
  return positionsOf({
    rows: await selectRows(client, `${selectSql(positions)} ORDER BY stream`),
    trail: await selectRows(client, `${selectSql(trail)} ORDER BY stream, sequence`),
  });
}

const reachedSql = `SELECT p.stream, p.epoch, p.created, p.sequence, t.message_id
  FROM unnest($1::text[], $2::bigint[]) AS wanted (stream, sequence)
  JOIN positions AS p ON p.stream = wanted.stream
  LEFT JOIN position_trail AS t ON t.stream = wanted.stream AND t.sequence = wanted.sequence`;

/** The statement looks up each row individually, because a join might scan the whole table. */
const stepsSql = `SELECT wanted.at - 1, found.first_uuid, found.merged_into
  FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS wanted (project_id, uuid, at)
  CROSS JOIN LATERAL (
    SELECT first_uuid, merged_into FROM members
    WHERE project_id = wanted.project_id AND uuid = wanted.uuid LIMIT 1
  ) AS found`;

async function reachedIn(
  client: ClientBase,
  messages: readonly StreamMessage[],
): Promise<ReachedStream[]> {
  const rows = await selectRows(client, reachedSql, [
    arrayOf(messages.map(({ stream }) => stream)),
    arrayOf(messages.map(({ sequence }) => sequence)),
  ]);
  return rows.map(reachedStreamOf);
}

async function uuidsIn(client: ClientBase, ids: readonly ProjectIds[]): Promise<(string | null)[]> {
  const walk = new UuidWalk(ids);
  while (walk.steps.length > 0) {
    const rows = await selectRows(client, stepsSql, [
      arrayOf(walk.steps.map(({ projectId }) => projectId)),
      arrayOf(walk.steps.map(({ uuid }) => uuid)),
    ]);
    walk.take(rows as unknown as StepRow[]);
  }
  return walk.shown;
}
