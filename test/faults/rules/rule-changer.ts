// Changes the rules of the project every second or two, like an operator: applies a new file, or
// rolls back to an earlier one. Reads every version that the store then has.

import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import {
  readSecret,
  readVersion,
  versionsOf,
} from "../../../src/gateway/projects/rules/stored-versions.ts";
import { applyRules } from "../../../src/gateway/projects/rules/versions.ts";
import type { RulesFile } from "../../../src/rules/rules-file.ts";
import { connectReader } from "../connect-reader.ts";
import type { Random } from "../random.ts";
import type { Store } from "../scenario.ts";
import { ruledProject } from "./ruled-events.ts";
import { fileOf, lastRules, randomRules } from "./rules-texts.ts";

export interface KnownVersion {
  readonly version: number;
  readonly text: string;
  readonly file: RulesFile;
  /** No gateway used the version earlier. In epoch milliseconds. */
  readonly atMs: number;
}

interface ChangerOptions {
  readonly store: Store;
  readonly random: Random;
  /** The pause between two changes is this to twice this. */
  readonly pauseMs: number;
}

const rollbackShare = 0.25;
const againMs = 200;
const lastMsMax = 30_000;
const author = "rules@faults";

export class RuleChanger {
  readonly #options: ChangerOptions;
  readonly #stopping = new AbortController();
  readonly versions = new Map<number, KnownVersion>();
  secret: Uint8Array = new Uint8Array();
  applied = 0;
  rolledBack = 0;
  failed = 0;
  #texts = 0;
  #running: Promise<void> | undefined;

  constructor(options: ChangerOptions) {
    this.#options = options;
  }

  /** Applies the first file, and continues to change it until `stop`. */
  async start(): Promise<void> {
    await this.#withConnection(async (connection) => {
      await this.#apply(connection, this.#next());
      const secret = await readSecret(connection, this.#place);
      if (secret === undefined) throw new Error("change rules: the project has no secret");
      this.secret = secret;
    });
    this.#running = this.#run();
  }

  abort(): void {
    this.#stopping.abort();
  }

  /** Applies the last version and returns it. Rejects if it cannot be applied within 30 s. */
  async stop(): Promise<number> {
    this.abort();
    await this.#running;
    const deadline = performance.now() + lastMsMax;
    for (;;) {
      try {
        return await this.#withConnection((one) => this.#apply(one, { text: lastRules() }));
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await delay(againMs);
      }
    }
  }

  get #place() {
    return { prefix: "penstock", replicas: this.#options.store.replicas, id: ruledProject };
  }

  async #run(): Promise<void> {
    const { random, pauseMs } = this.#options;
    const { signal } = this.#stopping;
    for (;;) {
      await delay(pauseMs * (1 + random()), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const change = this.#next();
      try {
        await this.#withConnection((connection) => this.#apply(connection, change));
        if (change.from === undefined) this.applied++;
        else this.rolledBack++;
      } catch {
        // The store is down, or the version is stored without an answer. It is read later.
        this.failed++;
      }
    }
  }

  #next(): { readonly text: string; readonly from?: number } {
    const { random } = this.#options;
    const known = [...this.versions.values()].slice(-10);
    const earlier = known[Math.floor(random() * known.length)];
    if (earlier !== undefined && random() < rollbackShare)
      return { text: earlier.text, from: earlier.version };
    return { text: randomRules(random, ++this.#texts) };
  }

  async #apply(
    connection: NatsConnection,
    change: { readonly text: string; readonly from?: number },
  ): Promise<number> {
    const { version } = await applyRules(connection, { ...this.#place, author, ...change });
    for (const one of await versionsOf(connection, this.#place)) {
      if (this.versions.has(one)) continue;
      const found = await readVersion(connection, { ...this.#place, version: one });
      if (found === undefined) continue;
      const { text, atMs } = found;
      this.versions.set(one, { version: one, text, atMs, file: fileOf(text) });
    }
    return version;
  }

  async #withConnection<T>(use: (connection: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await connectReader(this.#options.store);
    try {
      return await use(connection);
    } finally {
      await connection.close();
    }
  }
}
