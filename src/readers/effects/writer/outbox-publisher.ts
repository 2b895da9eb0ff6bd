// Publishes the messages of the outbox, and then removes them. If a stream rejects a message, other
// messages are published anyway. After a crash, a message may be published again with the same id.

import { JetStreamApiError, type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { leastOf } from "../../../platform/base/extremes.ts";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import { managerOf } from "../../../platform/nats/api.ts";
import { messageIdHeader } from "../../../platform/nats/names.ts";
import type { EffectsStore } from "../store/port.ts";
import type { OutboxRow } from "../types.ts";

interface OutboxPublisherOptions {
  readonly connection: NatsConnection;
  readonly store: Pick<EffectsStore, "outbox" | "published" | "trimOutbox">;
  readonly log: Pick<Log, "warn">;
  readonly rowsMax?: number;
}

type Outcome = "stored" | "refused" | "unanswered";

interface Retry {
  readonly pauseMs: number;
  readonly atMonotonicMs: number;
}

const rowsAtOnce = 100;
/** Maximum number of messages in the outbox. If there are more, the oldest messages are dropped. */
const rowsMaxDefault = 10_000;
const timeoutMs = 2_000;
const retryMs = 1_000;
const retryMsMax = 60_000;
const sayAgainMs = 30_000;

export class OutboxPublisher {
  readonly #options: OutboxPublisherOptions;
  readonly #js: JetStreamClient;
  readonly #ended = new AbortController();
  readonly #running: Promise<void>;
  readonly #warning: SparseWarning;
  readonly #dropWarning: SparseWarning;
  readonly #retries = new Map<string, Retry>();
  #readTo = 0;
  #dropped = 0;
  #isAsked = true;
  #wake: (() => void) | undefined;

  constructor(options: OutboxPublisherOptions) {
    this.#options = options;
    this.#warning = new SparseWarning(options.log, sayAgainMs);
    this.#dropWarning = new SparseWarning(options.log, sayAgainMs);
    this.#js = jetstream(options.connection, { timeout: timeoutMs });
    this.#running = this.#run();
  }

  ask(): void {
    this.#isAsked = true;
    this.#wake?.();
  }

  async close(): Promise<void> {
    this.#ended.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      if (!this.#isAsked && !this.#isDue()) {
        await this.#rest();
        continue;
      }
      this.#isAsked = false;
      try {
        await this.#trim();
        await this.#publishAll();
      } catch (error) {
        this.#isAsked = true;
        this.#warn(error as Error);
        await pauseUntilAborted(retryMs, signal);
      }
    }
  }

  async #rest(): Promise<void> {
    const woken = Promise.withResolvers<void>();
    this.#wake = woken.resolve;
    const due = leastOf([...this.#retries.values()].map(({ atMonotonicMs }) => atMonotonicMs));
    const waitMs = Math.max(1, due - performance.now());
    const timer = Number.isFinite(due) ? setTimeout(woken.resolve, waitMs) : undefined;
    await woken.promise;
    clearTimeout(timer);
  }

  #isDue(nowMonotonicMs = performance.now()): boolean {
    return [...this.#retries.values()].some(({ atMonotonicMs }) => atMonotonicMs <= nowMonotonicMs);
  }

  async #trim(): Promise<void> {
    const { store, rowsMax = rowsMaxDefault } = this.#options;
    const dropped = await store.trimOutbox(rowsMax);
    if (dropped === 0) return;
    this.#dropped += dropped;
    const fields = { dropped: this.#dropped, rowsMax };
    this.#dropWarning.warn(
      fields,
      "effects outbox full: its oldest messages were dropped unpublished",
    );
  }

  async #publishAll(): Promise<void> {
    const { store } = this.#options;
    const nowMonotonicMs = performance.now();
    const tried = new Map<string, Outcome>();
    let last = this.#isDue(nowMonotonicMs) ? 0 : this.#readTo;
    while (!this.#ended.signal.aborted) {
      const rows = await store.outbox(rowsAtOnce, last);
      if (rows.length === 0) break;
      const isResting = ({ subject }: OutboxRow): boolean =>
        (this.#retries.get(subject)?.atMonotonicMs ?? 0) > nowMonotonicMs ||
        tried.get(subject) === "unanswered";
      await this.#publishRows(
        rows.filter((row) => !isResting(row)),
        tried,
      );
      last = rows.at(-1)!.id;
    }
    this.#readTo = Math.max(this.#readTo, last);
    this.#noteAgain(tried, nowMonotonicMs);
  }

  #noteAgain(tried: ReadonlyMap<string, Outcome>, sinceMonotonicMs: number): void {
    for (const [subject, { atMonotonicMs }] of this.#retries)
      if (atMonotonicMs <= sinceMonotonicMs && !tried.has(subject)) this.#retries.delete(subject);
    for (const [subject, outcome] of tried) {
      const before = this.#retries.get(subject)?.pauseMs;
      const pauseMs = before === undefined ? retryMs : Math.min(2 * before, retryMsMax);
      if (outcome === "stored") this.#retries.delete(subject);
      else this.#retries.set(subject, { pauseMs, atMonotonicMs: performance.now() + pauseMs });
    }
  }

  async #publishRows(rows: readonly OutboxRow[], tried: Map<string, Outcome>): Promise<void> {
    if (rows.length === 0) return;
    const { connection, store } = this.#options;
    const storedSubjects = new Map<string, boolean>();
    for (const { subject } of rows)
      if (!storedSubjects.has(subject)) storedSubjects.set(subject, await this.#isStored(subject));
    const published = rows.map(async (row) => {
      const outcome = await this.#publish(row, storedSubjects.get(row.subject) === true);
      const before = tried.get(row.subject) ?? "stored";
      tried.set(row.subject, outcome === "stored" ? before : outcome);
      return outcome === "stored" ? [row.messageId] : [];
    });
    const stored = (await Promise.all(published)).flat();
    await connection.flush();
    await store.published(stored);
  }

  async #publish({ subject, json, messageId }: OutboxRow, isKept: boolean): Promise<Outcome> {
    const head = headers();
    head.set(messageIdHeader, messageId);
    try {
      if (isKept) await this.#js.publish(subject, json, { msgID: messageId });
      else this.#options.connection.publish(subject, json, { headers: head });
      return "stored";
    } catch (error) {
      this.#warn(error as Error);
      return error instanceof JetStreamApiError ? "refused" : "unanswered";
    }
  }

  #warn({ message }: Error): void {
    this.#warning.warn({ reason: message }, "effects outbox: publishing failed");
  }

  /** Returns true if a stream stores the subject. Otherwise, no acknowledgement would arrive. */
  async #isStored(subject: string): Promise<boolean> {
    const manager = await managerOf(this.#options.connection, { timeoutMs });
    for await (const _ of manager.streams.names(subject)) return true;
    return false;
  }
}
