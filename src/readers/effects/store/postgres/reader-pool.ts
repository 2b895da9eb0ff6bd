// The connections of the readers. Each answer is read from one snapshot, in one transaction.

import { type Client, type ClientBase, Pool } from "pg";
import { atMost } from "../../../../platform/base/retry.ts";
import type { Value } from "../../../../platform/base/table.ts";
import type { PostgresAddress } from "../../../../platform/postgres/address.ts";
import {
  closeMsMax,
  connect,
  destroy,
  keepAliveSql,
  prepare,
  triedConfig,
} from "../../../../platform/postgres/connect.ts";
import { leavesConnection, storeErrorOf } from "../../../../platform/postgres/faults.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import { hints, requireVersion, schemaName } from "./migrate.ts";

const connectionsMax = 4;
const idleMs = 30_000;
const statementMsMax = 30_000;
const longStatementMsDefault = 600_000;
const [name, schema] = ["penstock effects reader", schemaName];
const shortReads = { name, schema, statementMsMax };
const beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

interface BatchQuery<Item> {
  readonly sql: string;
  readonly rowsMax: number;
  readonly itemsOf: (rows: Value[][], client: ClientBase) => Promise<readonly Item[]>;
}

export class ReaderPool {
  readonly #address: PostgresAddress;
  readonly #longStatementMsMax: number;
  #pool: Promise<Pool> | undefined;
  readonly #clients = new Set<ClientBase>();

  constructor(address: PostgresAddress, longStatementMsMax = longStatementMsDefault) {
    this.#address = address;
    this.#longStatementMsMax = longStatementMsMax;
  }

  async read<Result>(work: (client: ClientBase) => Promise<Result>): Promise<Result> {
    try {
      const client = await (await this.#made()).connect();
      let fault: unknown;
      try {
        return await inSnapshot(client, work);
      } catch (error) {
        fault = error;
        throw error;
      } finally {
        client.release(fault !== undefined && !leavesConnection(fault));
      }
    } catch (error) {
      throw storeErrorOf(error, { doing: "read rows", shown: this.#address.shown, hints });
    }
  }

  async *batches<Item>(queries: readonly BatchQuery<Item>[]): AsyncGenerator<Item> {
    let client: Client | undefined;
    try {
      client = await this.#longClient();
      for (const { sql, rowsMax, itemsOf } of queries) {
        await client.query(`DECLARE batches NO SCROLL CURSOR FOR ${sql}`);
        const fetch = { text: `FETCH ${rowsMax} FROM batches`, rowMode: "array" } as const;
        for (;;) {
          const { rows } = await client.query<Value[]>(fetch);
          if (rows.length === 0) break;
          yield* await itemsOf(rows, client);
        }
        await client.query("CLOSE batches");
      }
    } catch (error) {
      throw storeErrorOf(error, { doing: "read rows", shown: this.#address.shown, hints });
    } finally {
      await client?.end().catch(() => {});
    }
  }

  #made(): Promise<Pool> {
    this.#pool ??= this.#newPool().catch((error: unknown) => {
      this.#pool = undefined;
      throw error;
    });
    return this.#pool;
  }

  async #newPool(): Promise<Pool> {
    const { shown } = this.#address;
    const pool = new Pool({
      ...(await triedConfig(this.#address, shortReads)),
      max: connectionsMax,
      idleTimeoutMillis: idleMs,
      allowExitOnIdle: true,
      async onConnect(client) {
        await prepare(client, shortReads);
        await requireVersion(client, shown);
      },
    });
    pool.on("error", () => {});
    pool.on("connect", (client) => {
      this.#clients.add(client);
      // The error is ignored here, because the next query reports the lost connection. Without a
      // listener, the error would end the process.
      client.on("error", () => {});
    });
    pool.on("remove", (client) => void this.#clients.delete(client));
    return pool;
  }

  async #longClient(): Promise<Client> {
    const client = await connect(this.#address, {
      name,
      schema,
      statementMsMax: this.#longStatementMsMax,
      idleMsMax: 0,
    });
    try {
      await selectRows(client, keepAliveSql);
      await requireVersion(client, this.#address.shown);
      await client.query(beginSnapshot);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  /** Waits for running queries, but not for a server that does not respond. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool !== undefined)
      await atMost(
        closeMsMax,
        pool.then((made) => made.end()).catch(() => {}),
      );
    for (const client of this.#clients) destroy(client);
  }
}

async function inSnapshot<Result>(
  client: ClientBase,
  work: (client: ClientBase) => Promise<Result>,
): Promise<Result> {
  await client.query(beginSnapshot);
  try {
    return await work(client);
  } finally {
    await client.query("ROLLBACK").catch(() => {});
  }
}
