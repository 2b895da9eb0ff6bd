// Writes this process's changed counts to the usage record at an interval, and the rest at the end.
// Until then it writes one value at a time, with pauses, so that events never wait for these
// writes.

import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import { isConnected } from "../../../platform/nats/api.ts";
import { type Counts, type KnownMeter, type Meter, noCounts } from "../quota/meter.ts";
import type { BucketPlace } from "../registry/bucket.ts";
import { openUsageBucket, type UsageRecord, usageKey, usageValue } from "./usage.ts";

interface UsageWriterOptions extends BucketPlace {
  readonly connection: NatsConnection;
  /** Distinguishes this process's records. Only letters, digits, `-` and `_`. */
  readonly processId: string;
  readonly meters: () => Iterable<KnownMeter>;
  readonly log: Pick<Log, "warn">;
  /** Returns the time in milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** Interval between two rounds of writing. Default: 10 s. */
  readonly intervalMs?: number;
}

/** The last collected counts of a meter, their time, and whether they are written. */
interface Collected {
  readonly counts: Counts;
  atMs: number;
  isWritten: boolean;
}

interface Change {
  readonly key: string;
  readonly record: UsageRecord;
  readonly seen: Collected;
}

const intervalMsDefault = 10_000;
/** Consecutive failures that end a round. Each try may take a second. */
const failuresInARowMax = 3;
/** Values between two pauses: at most 100 a second, because each may need an fsync. */
const writesInARow = 10;
const pauseMs = 100;
const writesAtOnceAtEnd = 64;
const endMsMax = 1_000;
const warningEveryMs = 60_000;

export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #intervalMs: number;
  readonly #closing = new AbortController();
  readonly #sinceMs: number;
  readonly #collected = new WeakMap<Meter, Collected>();
  readonly #warning: SparseWarning;
  readonly #writing: Promise<void>;
  #collectedMs: number;
  #bucket: Promise<KV> | undefined;

  constructor(options: UsageWriterOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? intervalMsDefault;
    this.#sinceMs = options.wallMs();
    this.#collectedMs = this.#sinceMs;
    this.#warning = new SparseWarning(options.log, warningEveryMs);
    this.#writing = this.#keepWriting();
  }

  /** Writes the counts that are not written yet, for a second at most. */
  async close(): Promise<void> {
    this.#closing.abort();
    const written = new AbortController();
    await Promise.race([this.#writeRest(), pauseUntilAborted(endMsMax, written.signal)]);
    written.abort();
  }

  async #keepWriting(): Promise<void> {
    const { signal } = this.#closing;
    await pauseUntilAborted(this.#intervalMs, signal, { ref: false });
    while (!signal.aborted) {
      let count = 0;
      let failures = 0;
      for (const change of this.#changes()) {
        failures = (await this.#write(change)) ? 0 : failures + 1;
        if (++count % writesInARow === 0) await pauseUntilAborted(pauseMs, signal, { ref: false });
        if (signal.aborted || failures >= failuresInARowMax) break;
      }
      await pauseUntilAborted(this.#intervalMs, signal, { ref: false });
    }
  }

  *#changes(): Generator<Change> {
    const { processId, wallMs } = this.#options;
    for (const { projectId, meter } of this.#collect()) {
      const before = this.#collected.get(meter)!;
      const { counts } = meter;
      const atMs = wallMs();
      if (before.isWritten && areSame(counts, before.counts)) {
        before.atMs = atMs;
        continue;
      }
      const seen = { counts, atMs, isWritten: false };
      this.#collected.set(meter, seen);
      const lately = {
        seconds: (atMs - before.atMs) / 1_000,
        accepted: counts.accepted - before.counts.accepted,
        rateLimited: counts.rateLimitedEvents - before.counts.rateLimitedEvents,
      };
      const record = { ...counts, sinceMs: this.#sinceMs, atMs, lately };
      // The counts of a project's later meter begin at 0, and must not replace the evicted one's.
      const from = meter.series === 0 ? processId : `${processId}-${meter.series}`;
      yield { key: usageKey(projectId, from), record, seen };
    }
  }

  /**
   * Records new meters as of the last collection. A round may end early, so all are recorded first.
   */
  #collect(): KnownMeter[] {
    const all = [...this.#options.meters()];
    for (const { meter } of all) {
      if (!this.#collected.has(meter))
        this.#collected.set(meter, { counts: noCounts, atMs: this.#collectedMs, isWritten: true });
    }
    this.#collectedMs = this.#options.wallMs();
    return all;
  }

  async #write({ key, record, seen }: Change): Promise<boolean> {
    try {
      this.#bucket ??= openUsageBucket(this.#options.connection, this.#options);
      await (await this.#bucket).put(key, usageValue(record));
      seen.isWritten = true;
      return true;
    } catch (error) {
      // The bucket may have been deleted: the next try opens it again, or creates it.
      this.#bucket = undefined;
      if (isConnected(this.#options.connection))
        this.#warning.warn(
          { reason: (error as Error).message },
          "usage record cannot be written: trying again",
        );
      return false;
    }
  }

  async #writeRest(): Promise<void> {
    await this.#writing;
    const rest = [...this.#changes()];
    for (let from = 0; from < rest.length; from += writesAtOnceAtEnd) {
      const some = rest.slice(from, from + writesAtOnceAtEnd);
      const written = await Promise.all(some.map((change) => this.#write(change)));
      if (!written.includes(true)) return;
    }
  }
}

function areSame(left: Counts, right: Counts): boolean {
  // No other count changes unless one of these does.
  const names = ["accepted", "unknown", "dropped", "rateLimitedRequests"] as const;
  return names.every((name) => left[name] === right[name]);
}
