// A sink's one connection to PostgreSQL: it holds the lock by which one sink at a time writes to a
// schema, and is made anew when it is lost. While another sink has the lock it stays connected and
// asks again. A process that stands still loses the lock after a minute, where the server can end
// an idle session (14 and newer): its kernel would go on answering for it.

import type { Client } from "pg";
import { StoreError } from "../../base/store-error.ts";
import type { PostgresAddress } from "../../postgres/address.ts";
import { connect, destroy } from "../../postgres/connect.ts";
import { leavesConnection, storeErrorOf } from "../../postgres/faults.ts";
import { keepAliveSql } from "../../postgres/keep-alive.ts";
import { selectRows } from "../../postgres/select-rows.ts";
import { MovedError, StandbyError } from "../sink-target.ts";

/** The first of the two numbers of the lock, freely chosen; the other one is of the schema. */
const lockClass = 1_885_695_604;
const tryLockSql = `SELECT pg_try_advisory_lock(${lockClass}, hashtext($1))`;
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
  #signTimer: NodeJS.Timeout | undefined;
  #holdsLock = false;
  #isBusy = false;

  constructor(address: PostgresAddress, schema: string, idleMsMax = idleMsMaxDefault) {
    this.#address = address;
    this.#schema = schema;
    this.#idleMsMax = idleMsMax;
  }

  /**
   * Does `work` on the connection, with the lock. Rejects with a StandbyError while another one has
   * the lock, else with a StoreError, or a MovedError of `work`. Two at once would end each other's
   * transactions, so the second one is rejected.
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
      if (error instanceof StandbyError || error instanceof MovedError) throw error;
      if (!leavesConnection(error)) this.#letGo();
      throw storeErrorOf(error, { doing, shown: this.#address.shown, hints });
    } finally {
      this.#isBusy = false;
    }
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

  async #connect(): Promise<Client> {
    const schema = this.#schema;
    const client = await connect(this.#address, { name: "penstock sink", statementMsMax, schema });
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
    this.#holdsLock = false;
    clearInterval(this.#signTimer);
    const sign = (): void => {
      if (!this.#isBusy) client.query("SELECT 1").catch(() => {});
    };
    this.#signTimer = setInterval(sign, this.#idleMsMax / signs).unref();
    return client;
  }

  async #takeLock(client: Client): Promise<void> {
    const [row] = await selectRows(client, tryLockSql, [this.#schema]);
    if (row?.[0] !== 1)
      throw new StandbyError(`another sink writes to ${this.#address.shown}, ${this.#schema}`);
    this.#holdsLock = true;
  }

  #letGo(): void {
    clearInterval(this.#signTimer);
    const client = this.#client;
    this.#client = undefined;
    this.#holdsLock = false;
    if (client !== undefined) destroy(client);
  }
}
