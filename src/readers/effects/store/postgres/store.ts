// The store for PostgreSQL. If a commit rejects with an error that is not a FencedError, the commit
// may or may not be stored. The caller must then start again from the last commit.

import type { ClientBase } from "pg";
import { StoreError, TooLargeError } from "../../../../platform/base/store-error.ts";
import { pick, type Row, type Table, type Value } from "../../../../platform/base/table.ts";
import { type PostgresAddress, readAddress } from "../../../../platform/postgres/address.ts";
import { arrayOf, columnsSql, selectSql, unnestSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type {
  ActiveIdsRow,
  ActivityRow,
  Commit,
  GroupRow,
  LargePropertiesRow,
  MemberRow,
  Position,
  StoredOutboxRow,
} from "../../types.ts";
import { bindSql } from "../installation.ts";
import type { EffectsStore, GroupName } from "../port.ts";
import { flatCommit, piecesOf } from "../rows/flat-commit.ts";
import {
  activeIdsOf,
  activityOf,
  groupRowOf,
  groupTypeOf,
  largePropertiesOf,
  memberAt,
  memberRowOf,
  outboxRowOf,
} from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";
import { lookupBytesMax, trimOutboxSql } from "../shared-sql.ts";
import { writeCommit } from "./commit.ts";
import { hasSchema, rebuiltSchemaName, schemaName } from "./migrate.ts";
import { PostgresReader, readPositions } from "./reader.ts";
import { holdsLockSql, WriterSession } from "./session.ts";

const pieceRowsMax = 2_000;
const remedyOfDamage =
  "restore a backup; if there is none, drop the schema penstock_effects and restart: events that are still in the streams are applied again, and the effects of older events are lost";
const tooLarge = "cannot look up rows: their properties are too large";

export class PostgresStore implements EffectsStore {
  readonly reader: PostgresReader;
  readonly #address: PostgresAddress;
  readonly #session: WriterSession;
  #begun: { readonly of: ClientBase; readonly number: number } | undefined;
  #trails:
    | { readonly of: ClientBase; readonly byStream: Map<string, Position["trail"]> }
    | undefined;

  /**
   * If `isRebuilt` is set, the store writes to a new schema until the caller calls `takePlace`.
   * Throws a StoreError if the URL is invalid.
   */
  constructor({ url, isRebuilt = false }: { readonly url: string; readonly isRebuilt?: boolean }) {
    this.#address = readAddress(url);
    const schema = isRebuilt ? rebuiltSchemaName : schemaName;
    this.#session = new WriterSession(this.#address, { schema, isNew: isRebuilt });
    this.reader = new PostgresReader({ url });
  }

  /** Replaces the current schema. Returns the new name of the replaced schema. */
  takePlace(): Promise<string> {
    return this.#session.run("replace the schema", async (client) => {
      let kept = `${schemaName}_before_rebuild`;
      for (let nth = 2; await hasSchema(client, kept); nth++)
        kept = `${schemaName}_before_rebuild_${nth}`;
      await client.query("BEGIN");
      try {
        await client.query(`ALTER SCHEMA ${schemaName} RENAME TO ${kept}`);
        await client.query(`ALTER SCHEMA ${rebuiltSchemaName} RENAME TO ${schemaName}`);
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK").catch(() => {});
        throw error;
      }
      return kept;
    });
  }

  dropRebuilt(): Promise<void> {
    return this.#session.run("drop the rebuilt schema", async (client) => {
      await client.query(`DROP SCHEMA IF EXISTS ${rebuiltSchemaName} CASCADE`);
    });
  }

  async open(): Promise<void> {
    await this.#session.run("open the tables", async () => {});
  }

  async close(): Promise<void> {
    await Promise.all([this.reader.close(), this.#session.close()]);
  }

  holdsLock(): Promise<boolean> {
    return this.#session.run("check the writer's lock", async (client) => {
      const [row] = await selectRows(client, holdsLockSql);
      return row?.[0] === 1;
    });
  }

  bindTo(prefix: string): Promise<void> {
    return this.#session.run("store the installation", async (client) => {
      await client.query(bindSql, [prefix]);
    });
  }

  lastCommit(): Promise<number> {
    return this.#session.run("read the last commit", async (client) => {
      await this.#undo(client);
      const [row] = await selectRows(client, "SELECT last_commit FROM writer");
      return row?.[0] as number;
    });
  }

  positions(): Promise<readonly Position[]> {
    return this.#session.run("read positions", async (client) => {
      const positions = await readPositions(client);
      this.#trails = { of: client, byStream: trailsOf(positions) };
      return positions;
    });
  }

  async members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]> {
    // The statement looks up each row individually, because for `uuid = ANY` PostgreSQL might scan
    // all rows of the project.
    const sql = `SELECT ${boundedSql(tables.members, "found.")}
      FROM unnest($2::uuid[]) AS wanted (uuid) CROSS JOIN LATERAL (
        ${selectSql(tables.members)}
        WHERE project_id = $1 AND uuid = wanted.uuid LIMIT 1
      ) AS found`;
    const rows = await this.#session.run("read members", async (client) => {
      const found = new Map<string, Value[]>();
      let bytes = 0;
      let wanted = [...new Set(distinctIds.map((id) => personUuid(projectId, id)))].sort();
      while (wanted.length > 0) {
        const rows = await selectRows(client, sql, [projectId, arrayOf(wanted)]);
        bytes += bytesOf(rows);
        if (bytes > lookupBytesMax) return undefined;
        for (const row of rows) found.set(row[memberAt.uuid] as string, [...row]);
        const next = rows
          .map((row) => row[memberAt.merged_into] as string | null)
          .filter((uuid) => uuid !== null);
        wanted = [...new Set(next)].filter((uuid) => !found.has(uuid)).sort();
      }
      return [...found.values()].map((row) => {
        const mergedInto = row[memberAt.merged_into] as string | null;
        if (mergedInto !== null)
          row[memberAt.merged_into] = this.#idOf(found.get(mergedInto), mergedInto);
        return memberRowOf(row);
      });
    });
    if (rows === undefined) throw new TooLargeError(tooLarge);
    return rows;
  }

  #idOf(row: Row | undefined, uuid: string): Value {
    const id = row?.[memberAt.distinct_id];
    if (id !== undefined) return id;
    throw new StoreError(
      `cannot read PostgreSQL at ${this.#address.shown}: it is damaged: no row for ${uuid}: ${remedyOfDamage}`,
    );
  }

  async groups(names: readonly GroupName[]): Promise<readonly GroupRow[]> {
    const keys = names.map(({ projectId, type, key }) => [projectId, type, key]);
    const rows = await this.#byKey("groups", tables.groups, keys);
    if (bytesOf(rows) > lookupBytesMax) throw new TooLargeError(tooLarge);
    return rows.map(groupRowOf);
  }

  async groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]> {
    const rows = await this.#ofProjects("read group types", tables.groupTypes, projectIds);
    return rows.map(groupTypeOf);
  }

  async activeIds(
    days: readonly { projectId: string; day: string }[],
  ): Promise<readonly ActiveIdsRow[]> {
    const keys = days.map(({ projectId, day }) => [projectId, day]);
    return (await this.#byKey("active ids", tables.activeIds, keys)).map(activeIdsOf);
  }

  async activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]> {
    const rows = await this.#ofProjects("read activity", tables.activity, projectIds);
    return rows.map(activityOf);
  }

  async largeProperties(): Promise<readonly LargePropertiesRow[]> {
    return await this.#session.run("read large properties", async (client) => {
      const rows = await selectRows(client, selectSql(tables.largeProperties));
      return rows.map(largePropertiesOf);
    });
  }

  commit(commit: Commit): Promise<void> {
    return this.#session.run("commit", async (client) => {
      const known = this.#trails?.of === client ? this.#trails : undefined;
      const byStream = known?.byStream ?? trailsOf(await readPositions(client));
      this.#trails = undefined;
      const { shown } = this.#address;
      const { number, isPart = false } = commit;
      let isFirst = this.#begun?.number !== number;
      if (isFirst) await this.#undo(client);
      else if (this.#begun?.of !== client)
        throw new StoreError(
          `cannot commit in PostgreSQL at ${shown}: the first part of the commit was rolled back`,
        );
      this.#begun = undefined;
      for (const piece of piecesOf(commit, pieceRowsMax)) {
        const part = { shown, isFirst, isLast: piece.isPart !== true };
        await writeCommit(client, flatCommit(piece, byStream), part);
        isFirst = false;
      }
      if (isPart) this.#begun = { of: client, number };
      for (const { stream, trail } of commit.positions) byStream.set(stream, trail);
      this.#trails = { of: client, byStream };
    });
  }

  async #undo(client: ClientBase): Promise<void> {
    if (this.#begun?.of === client) await client.query("ROLLBACK");
    this.#begun = undefined;
  }

  outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]> {
    const columns = columnsSql(tables.outbox.columns);
    const sql = `SELECT id, ${columns} FROM outbox WHERE id > $1 ORDER BY id LIMIT $2`;
    return this.#session.run("read the outbox", async (client) =>
      (await selectRows(client, sql, [afterId, limit])).map(outboxRowOf),
    );
  }

  trimOutbox(rowsMax: number): Promise<number> {
    return this.#session.run("trim the outbox", async (client) => {
      return (await client.query(trimOutboxSql, [rowsMax])).rowCount ?? 0;
    });
  }

  published(messageIds: readonly string[]): Promise<void> {
    const sql = "DELETE FROM outbox WHERE message_id = ANY ($1::text[])";
    return this.#session.run("remove published messages", async (client) => {
      await client.query(sql, [arrayOf(messageIds)]);
    });
  }

  #byKey(what: string, table: Table, keys: readonly Value[][]): Promise<Row[]> {
    const columns = table.key.map((_, column) => arrayOf(keys.map((key) => key[column] ?? null)));
    const isWanted = table.key.map((column) => `"${column}" = wanted."${column}"`).join(" AND ");
    const sql = `SELECT ${boundedSql(table, "found.")}
      FROM ${unnestSql(pick(table, table.key), "wanted", "at")} CROSS JOIN LATERAL (
        ${selectSql(table)} WHERE ${isWanted} LIMIT 1
      ) AS found ORDER BY wanted.at`;
    return this.#session.run(`read ${what}`, (client) => selectRows(client, sql, columns));
  }

  #ofProjects(doing: string, table: Table, projectIds: readonly string[]): Promise<Row[]> {
    const sql = `${selectSql(table)}
      WHERE project_id = ANY ($1::text[]) ORDER BY ${columnsSql(table.key)}`;
    return this.#session.run(doing, (client) => selectRows(client, sql, [arrayOf(projectIds)]));
  }
}

function trailsOf(positions: readonly Position[]): Map<string, Position["trail"]> {
  return new Map(positions.map(({ stream, trail }) => [stream, trail]));
}

function boundedSql({ columns }: Table, prefix = ""): string {
  if (!columns.includes("property_bytes")) return `${columnsSql(columns, prefix)}, 0 AS all_bytes`;
  const sum = `sum(${prefix}property_bytes) OVER ()`;
  const names = columns.map((column) =>
    column === "properties" || column === "property_state"
      ? `CASE WHEN ${sum} <= ${lookupBytesMax} THEN ${prefix}"${column}" END AS "${column}"`
      : `${prefix}"${column}"`,
  );
  return `${names.join(", ")}, coalesce(${sum}, 0) AS all_bytes`;
}

function bytesOf(rows: readonly Row[]): number {
  return (rows[0]?.at(-1) ?? 0) as number;
}
