// A sink's one connection to PostgreSQL: it holds the lock by which one sink at a time writes to a
// schema, and is made anew when it is lost. While another sink has the lock it stays connected and
// asks again. A process that stands still loses the lock after a minute, where the server can end
// an idle session (14 and newer): its kernel would go on answering for it. A pooler may hand each
// transaction to another session of the server, where neither the lock nor the search path is: each
// transaction begins with a look at whether the session is still the same.

import { randomUUID } from "node:crypto";
import type { Client, QueryArrayResult } from "pg";
import { StoreError } from "../../../platform/base/store-error.ts";
import type { PostgresAddress } from "../../../platform/postgres/address.ts";
import { connect, destroy } from "../../../platform/postgres/connect.ts";
import { leavesConnection, storeErrorOf } from "../../../platform/postgres/faults.ts";
import { keepAliveSql } from "../../../platform/postgres/keep-alive.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import { MovedError, StandbyError } from "../sink-target.ts";

/** The first of the two numbers of the lock, freely chosen; the other one is of the schema. */
const lockClass = 1_885_695_604;
const sessionSql = "current_setting('penstock.session', true)";
/** NULL: in another session, where the lock would be nobody's. */
const tryLockSql = `SELECT CASE WHEN ${sessionSql} = $2
  THEN pg_try_advisory_lock(${lockClass}, hashtext($1)) END`;
/** Also how long an answer is waited for. */
const statementMsMax = 120_000;
const idleMsMaxDefault = 60_000;
const idleSql = `SELECT set_config(name, $1, false) FROM pg_settings
  WHERE name = 'idle_session_timeout'`;
/** So often within that time the session shows that it is alive. */
const signs = 4;
const notTheTables =
  "the tables are not there: let the user make them, or make them by `penstock sink postgres --ddl`";
const hints = {
  "42501": "the user may not do this: let it own the schema, or make the tables by --ddl",
  "42P01": notTheTables,
  "3F000": notTheTables,
};

export class SinkSession {
  readonly #address: PostgresAddress;
  readonly #schema: string;
  readonly #idleMsMax: number;
  #client: Client | undefined;
  /** By this the connection's session of the server is told from others. */
  #id = "";
  #signTimer: NodeJS.Timeout | undefined;
  #holdsLock = false;
  #isBusy = false;
  /** Another session was met: a lock that is taken may be one that was left behind in a third. */
  #isPooled = false;

  constructor(address: PostgresAddress, schema: string, idleMsMax = idleMsMaxDefault) {
    this.#address = address;
    this.#schema = schema;
    this.#idleMsMax = idleMsMax;
  }

  /**
   * Does `work` on the connection, with the lock. Rejects with a StandbyError while another one has
   * the lock, else with a StoreError, or a MovedError of `work`; no transaction is left open then.
   * Two at once would end each other's transactions, so the second one is rejected.
   */
  async run<Result>(doing: string, work: (client: Client) => Promise<Result>): Promise<Result> {
    if (this.#isBusy)
      throw new StoreError(
        `${doing} in PostgreSQL at ${this.#address.shown}: something is being written still`,
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

  /** Begins a transaction of `work`, where the lock is held; anywhere else nothing is begun. */
  async begin(client: Client): Promise<void> {
    const results = (await client.query({
      text: `BEGIN; SET LOCAL search_path = "${this.#schema}", pg_catalog;
        SELECT ${sessionSql} = '${this.#id}'`,
      rowMode: "array",
    })) as unknown as QueryArrayResult<[number | null]>[];
    if (results.at(-1)?.rows[0]?.[0] !== 1) throw this.#pooled();
  }

  /** Gives the lock back. What is still under way is given up. */
  async close(): Promise<void> {
    clearInterval(this.#signTimer);
    if (this.#isBusy) this.#letGo();
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    // The server ends the connection a moment later than the client.
    if (this.#holdsLock) await client.query("SELECT pg_advisory_unlock_all()").catch(() => {});
    await client.end().catch(() => {});
  }

  /** Until the next `open`, others would wait for what the transaction has locked. */
  async #endTransaction(error: unknown): Promise<void> {
    if (error instanceof MovedError || leavesConnection(error))
      await this.#client?.query("ROLLBACK").catch(() => this.#letGo());
    else this.#letGo();
  }

  async #connect(): Promise<Client> {
    const [schema, session] = [this.#schema, randomUUID()];
    const client = await connect(this.#address, {
      ...{ name: "penstock sink", statementMsMax, schema, session },
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
      throw new StandbyError(`another sink writes to ${this.#address.shown}, ${this.#schema}`);
    this.#holdsLock = true;
    this.#isPooled = false;
  }

  /** With the connection goes what was begun on it. */
  #pooled(): StoreError {
    this.#isPooled = true;
    this.#letGo();
    return new StoreError(
      `write to ${this.#address.shown}: a pooler in transaction mode stands between: connect to the server itself`,
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
