// The only connection of the writer, which holds the writer's lock. Concurrent calls run one after
// another. A new connection can take over the lock from an earlier connection of this session, but
// not from another writer.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { atMost } from "../../../../platform/base/retry.ts";
import { StoreError } from "../../../../platform/base/store-error.ts";
import type { PostgresAddress } from "../../../../platform/postgres/address.ts";
import {
  closeMsMax,
  connect,
  destroy,
  requireUtf8,
} from "../../../../platform/postgres/connect.ts";
import { leavesConnection, storeErrorOf } from "../../../../platform/postgres/faults.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import { FencedError } from "../port.ts";
import { hints, migrate, schemaName } from "./migrate.ts";

/** The numbers are arbitrary. PostgreSQL releases an advisory lock when the connection ends. */
const [lockClass, lockObject] = [1_885_695_603, 1];
const lockNumbers = `${lockClass}, ${lockObject}`;
export const holdersSql = `SELECT pid, application_name, host(client_addr) FROM pg_locks
  LEFT JOIN pg_stat_activity USING (pid)
  WHERE granted AND locktype = 'advisory' AND classid = ${lockClass} AND objid = ${lockObject}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
export const holdsLockSql = `SELECT EXISTS (SELECT FROM pg_locks WHERE granted
  AND pid = pg_backend_pid() AND locktype = 'advisory'
  AND classid = ${lockClass} AND objid = ${lockObject})`;
const graceMs = 1_000;
const pauseMs = 20;
const checkSql = `SELECT set_config(name, '250', false) FROM pg_settings
  WHERE name = 'client_connection_check_interval'`;
const statementMsMax = 120_000;

export class WriterSession {
  readonly #address: PostgresAddress;
  readonly #schema: string;
  #isNew: boolean;
  readonly #name = `penstock effects ${randomUUID().slice(0, 8)}`;
  #client: Client | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #isGivenUp = false;

  /** If `isNew` is set, the first connection drops the existing schema. */
  constructor(address: PostgresAddress, { schema = schemaName, isNew = false } = {}) {
    this.#address = address;
    this.#schema = schema;
    this.#isNew = isNew;
  }

  /**
   * Runs `work` when no other call is running. Rejects with a StoreError, or with a FencedError
   * that `work` throws. After a connection error, the next call reconnects.
   */
  run<Result>(doing: string, work: (client: Client) => Promise<Result>): Promise<Result> {
    const result = this.#last.then(() => this.#runAlone(doing, work));
    this.#last = result.catch(() => {});
    return result;
  }

  /** Waits for running calls, but not for a server that does not respond. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await atMost(closeMsMax, this.#giveBack());
    this.#isGivenUp = true;
    this.#letGo();
  }

  async #giveBack(): Promise<void> {
    await this.#last;
    const client = this.#client;
    if (client === undefined) return;
    // The lock is released explicitly, because the server ends the connection with a delay.
    await client.query("SELECT pg_advisory_unlock_all()").catch(() => {});
    await client.end().catch(() => {});
  }

  async #runAlone<Result>(
    doing: string,
    work: (client: Client) => Promise<Result>,
  ): Promise<Result> {
    if (this.#isClosed) throw new StoreError(`cannot ${doing} in PostgreSQL: the store is closed`);
    try {
      this.#client ??= await this.#newClient();
      if (this.#isGivenUp) throw new Error("the store was closed during the operation");
      return await work(this.#client);
    } catch (error) {
      if (error instanceof FencedError) throw error;
      if (!leavesConnection(error)) this.#letGo();
      throw storeErrorOf(error, { doing, shown: this.#address.shown, hints });
    }
  }

  #letGo(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) destroy(client);
  }

  async #newClient(): Promise<Client> {
    const client = await connect(this.#address, {
      name: this.#name,
      statementMsMax,
      schema: this.#schema,
    });
    client.on("error", () => {
      if (this.#client === client) this.#letGo();
    });
    try {
      await requireUtf8(client, this.#address.shown);
      await selectRows(client, checkSql);
      await this.#takeLock(client);
      if (this.#isNew) await client.query(`DROP SCHEMA IF EXISTS ${this.#schema} CASCADE`);
      await migrate(client, this.#address.shown, this.#schema);
      this.#isNew = false;
      return client;
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  async #takeLock(client: Client): Promise<void> {
    const deadline = performance.now() + graceMs;
    for (;;) {
      const [row] = await selectRows(client, `SELECT pg_try_advisory_lock(${lockNumbers})`);
      if (row?.[0] === 1) return;
      const holder = await this.#otherHolder(client);
      if (holder !== undefined && performance.now() > deadline)
        throw new StoreError(
          `cannot open PostgreSQL at ${this.#address.shown}: another \`penstock effects\` writes to it (${holder}). End that process, or use another PENSTOCK_EFFECTS_URL`,
        );
      await delay(pauseMs);
    }
  }

  /**
   * Ends an earlier connection of this session, because the server could still commit its
   * statements. Returns the holder if another writer has the lock.
   */
  async #otherHolder(client: Client): Promise<string | undefined> {
    const rows = await selectRows(client, holdersSql);
    for (const [pid, name, host] of rows) {
      if (name !== this.#name)
        return `server process ${pid}${host === null ? "" : `, connected from ${host}`}`;
      await selectRows(client, "SELECT pg_terminate_backend($1)", [pid ?? null]);
    }
    return undefined;
  }
}
