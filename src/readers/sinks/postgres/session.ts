// The connection of a sink to PostgreSQL, which holds the lock of the schema. Each transaction
// checks that its session has the lock, because a connection pooler may change the session.

import { randomUUID } from "node:crypto";
import type { Client, QueryArrayResult } from "pg";
import { StoreError } from "../../../platform/base/store-error.ts";
import type { PostgresAddress } from "../../../platform/postgres/address.ts";
import { connect, destroy, keepAliveSql } from "../../../platform/postgres/connect.ts";
import { leavesConnection, storeErrorOf } from "../../../platform/postgres/faults.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { MovedError, StandbyError } from "../sink-target.ts";

/** The number is arbitrary. The second number of the lock is a hash of the schema. */
const lockClass = 1_885_695_604;
const sessionSql = "current_setting('penstock.session', true)";
const tryLockSql = `SELECT CASE WHEN ${sessionSql} = $2
  THEN pg_try_advisory_lock(${lockClass}, hashtext($1)) END`;
const statementMsMax = 120_000;
const idleMsMaxDefault = 60_000;
const idleSql = `SELECT set_config(name, $1, false) FROM pg_settings
  WHERE name = 'idle_session_timeout'`;
const signs = 4;
const notTheTables =
  "the tables do not exist: let the sink's user create them, or create them with `penstock sink postgres --ddl`";
const hints = {
  "42501": "the user lacks a privilege: let it own the schema, or create the tables with --ddl",
  "42P01": notTheTables,
  "3F000": notTheTables,
};

export class SinkSession {
  readonly #address: PostgresAddress;
  readonly #schema: string;
  readonly #idleMsMax: number;
  #client: Client | undefined;
  #id = "";
  #signTimer: NodeJS.Timeout | undefined;
  #holdsLock = false;
  #isBusy = false;
  /** If true, another session of the connection pooler may hold the lock. */
  #isPooled = false;

  constructor(address: PostgresAddress, schema: string, idleMsMax = idleMsMaxDefault) {
    this.#address = address;
    this.#schema = schema;
    this.#idleMsMax = idleMsMax;
  }

  /**
   * Runs `work` while this session holds the lock. If it rejects, no transaction is open.
   *
   * Rejects with a StandbyError if another sink has the lock, with a MovedError that `work` throws,
   * or with a StoreError.
   */
  async run<Result>(doing: string, work: (client: Client) => Promise<Result>): Promise<Result> {
    if (this.#isBusy)
      throw new StoreError(
        `cannot ${doing} in PostgreSQL at ${this.#address.shown}: another write is still running`,
      );
    this.#isBusy = true;
    try {
      const client = this.#client ?? (await this.#connect());
      if (!this.#holdsLock) await this.#takeLock(client);
      return await work(client);
    } catch (error) {
      if (error instanceof StandbyError) throw error;
      await this.#endTransaction(error);
      if (error instanceof MovedError) throw error;
      throw storeErrorOf(error, { doing, shown: this.#address.shown, hints });
    } finally {
      this.#isBusy = false;
    }
  }

  async begin(client: Client): Promise<void> {
    const results = (await client.query({
      text: `BEGIN; SET LOCAL search_path = "${this.#schema}", pg_catalog;
        SELECT ${sessionSql} = '${this.#id}'`,
      rowMode: "array",
    })) as unknown as QueryArrayResult<[number | null]>[];
    if (results.at(-1)?.rows[0]?.[0] !== 1) throw this.#pooled();
  }

  async close(): Promise<void> {
    clearInterval(this.#signTimer);
    if (this.#isBusy) this.#letGo();
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    if (this.#holdsLock) await client.query("SELECT pg_advisory_unlock_all()").catch(() => {});
    await client.end().catch(() => {});
  }

  /** Ends a transaction, because it would keep its locks until the next `open`. */
  async #endTransaction(error: unknown): Promise<void> {
    if (error instanceof MovedError || leavesConnection(error))
      await this.#client?.query("ROLLBACK").catch(() => this.#letGo());
    else this.#letGo();
  }

  async #connect(): Promise<Client> {
    const [schema, session] = [this.#schema, randomUUID()];
    const client = await connect(this.#address, {
      name: "penstock sink",
      statementMsMax,
      schema,
      session,
    });
    client.on("error", () => {
      if (this.#client === client) this.#letGo();
    });
    try {
      await selectRows(client, keepAliveSql);
      await selectRows(client, idleSql, [String(this.#idleMsMax)]);
    } catch (error) {
      destroy(client);
      throw error;
    }
    this.#client = client;
    this.#id = session;
    this.#holdsLock = false;
    clearInterval(this.#signTimer);
    const sign = (): void => {
      if (!this.#isBusy) client.query("SELECT 1").catch(() => {});
    };
    this.#signTimer = setInterval(sign, this.#idleMsMax / signs).unref();
    return client;
  }

  async #takeLock(client: Client): Promise<void> {
    const [row] = await selectRows(client, tryLockSql, [this.#schema, this.#id]);
    const hasLock = row?.[0] ?? null;
    if (hasLock === null || (hasLock !== 1 && this.#isPooled)) throw this.#pooled();
    if (hasLock !== 1)
      throw new StandbyError(
        `another sink writes to the schema ${this.#schema} at ${this.#address.shown}`,
      );
    this.#holdsLock = true;
    this.#isPooled = false;
  }

  #pooled(): StoreError {
    this.#isPooled = true;
    this.#letGo();
    return new StoreError(
      `cannot write to ${this.#address.shown}: the connection uses a pooler in transaction mode. Connect to the server directly`,
    );
  }

  #letGo(): void {
    clearInterval(this.#signTimer);
    const client = this.#client;
    this.#client = undefined;
    this.#holdsLock = false;
    if (client !== undefined) destroy(client);
  }
}
