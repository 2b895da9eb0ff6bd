// The lock that excludes a second sink. The lock is an INSERT whose body never ends. The server
// runs only one query with this id, and it ends the query when the connection is closed. The lock
// does not exclude a sink that writes to another replica.

import { randomUUID } from "node:crypto";
import type { ClientRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { atMost } from "../../../platform/base/retry.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { StandbyError } from "../sink-target.ts";
import { answerOf, type ClickHouseClient, runningAlready } from "./client.ts";

/** Older servers start the query only after they have received this number of bytes of the body. */
const openingBytes = 1_200_000;
/** Interval between the parts of the body in ms. Servers wait at least 30 s for the next part. */
const beatMs = 5_000;
const grantMsMax = 10_000;
const askAgainMs = 25;
const endMsMax = 1_000;

export class SinkLock {
  readonly #client: ClickHouseClient;
  readonly #database: string;
  readonly #queryId: string;
  #request: ClientRequest | undefined;
  #beat: NodeJS.Timeout | undefined;

  constructor(client: ClickHouseClient, database: string) {
    this.#client = client;
    this.#database = database;
    this.#queryId = `penstock-sink-lock:${database}`;
  }

  get isHeld(): boolean {
    return this.#request !== undefined;
  }

  /** Takes the lock. Rejects with a StandbyError if another sink has it. */
  async take(): Promise<void> {
    if (this.isHeld) return;
    const taken = new StandbyError(
      `another sink writes to the database ${this.#database} at ${this.#client.shown}`,
    );
    if ((await this.#holders()).length > 0) throw taken;
    const own = randomUUID();
    const request = this.#client.hold(
      `INSERT INTO ${this.#database}.sink_lock /* ${own} */ FORMAT JSONEachRow`,
      { queryId: this.#queryId },
    );
    let ended: string | undefined;
    let isRefused = false;
    answerOf(request).then(
      ({ status, text }) => {
        ended = `it ended with ${status}: ${text.slice(0, 300)}`;
        isRefused = text.includes(`Code: ${runningAlready}`);
      },
      (error: Error) => {
        ended = error.message;
      },
    );
    request.once("close", () => {
      ended ??= "the connection is closed";
      if (this.#request === request) this.#letGo();
    });
    request.write(" ".repeat(openingBytes));
    try {
      const deadline = performance.now() + grantMsMax;
      for (;;) {
        const holders = await this.#holders();
        if (holders.some((sql) => sql.includes(own))) break;
        if (holders.length > 0 || isRefused) throw taken;
        if (ended !== undefined || performance.now() > deadline)
          throw new StoreError(
            `cannot take the lock in ClickHouse at ${this.#client.shown}: ${ended ?? "the server has not started the query that holds the lock; to run without a lock, use --no-lock"}`,
          );
        await delay(askAgainMs);
      }
    } catch (error) {
      request.destroy();
      throw error;
    }
    if (ended !== undefined) throw new StoreError(`cannot hold the lock in ClickHouse: ${ended}`);
    this.#request = request;
    this.#beat = setInterval(() => request.write("\n"), beatMs).unref();
  }

  async release(): Promise<void> {
    const request = this.#request;
    this.#letGo();
    if (request === undefined) return;
    const closed = new Promise((resolve) => request.once("close", resolve));
    request.end();
    await atMost(endMsMax, closed);
    request.destroy();
  }

  #letGo(): void {
    clearInterval(this.#beat);
    this.#beat = undefined;
    this.#request = undefined;
  }

  async #holders(): Promise<string[]> {
    const sql = `SELECT query FROM system.processes WHERE query_id = '${this.#queryId}'`;
    const rows = await this.#client.rows("check for other sinks in", sql);
    return rows.map(([query]) => String(query));
  }
}
