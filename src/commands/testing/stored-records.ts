import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { objectIn } from "../../platform/base/json.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import type { StoredRecord } from "./expectation.ts";

const pollMs = 5;

export class StoredRecords {
  readonly #js: JetStreamClient;
  readonly #read = new Map<string, number>();
  #records: StoredRecord[] = [];

  constructor(connection: NatsConnection, streams: readonly string[]) {
    this.#js = jetstream(connection);
    for (const stream of streams) this.#read.set(stream, 0);
  }

  get all(): readonly StoredRecord[] {
    return this.#records;
  }

  /** Reads the streams until the connection is closed. Never rejects. */
  follow(): void {
    for (const stream of this.#read.keys()) void this.#follow(stream).catch(() => {});
  }

  /** Waits until all currently stored records are read. Rejects if NATS does not respond. */
  async catchUp(signal: AbortSignal): Promise<void> {
    const manager = await this.#js.jetstreamManager(false);
    for (const stream of this.#read.keys()) {
      const { state } = await manager.streams.info(stream);
      while (!signal.aborted && this.#read.get(stream)! < state.last_seq)
        await pauseUntilAborted(pollMs, signal);
    }
  }

  async reset(signal: AbortSignal): Promise<void> {
    await this.catchUp(signal);
    this.#records = [];
  }

  async #follow(stream: string): Promise<void> {
    const consumer = await this.#js.consumers.get(stream);
    for await (const message of await consumer.consume()) {
      for (const line of message.string().split("\n")) {
        const record = objectIn(line);
        if (record !== undefined) this.#records.push(record);
      }
      this.#read.set(stream, message.seq);
    }
  }
}
