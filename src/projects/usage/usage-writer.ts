// Writes this process's counts into the usage record: every ten seconds those of the projects that
// have changed, and all at the end. One value at a time, and not fast: it must never be what events
// wait for. What cannot be written now is written later.

import { setTimeout as delay } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../base/log.ts";
import type { Counts, Meter } from "../quota/meter.ts";
import type { KnownMeter } from "../quota/meters.ts";
import type { BucketPlace } from "../registry/bucket.ts";
import { openUsageBucket, type UsageRecord, usageKey, usageValue } from "./usage.ts";

export interface UsageWriterOptions extends BucketPlace {
  readonly connection: NatsConnection;
  /** Tells the records of processes apart. Of letters, digits, - and _. */
  readonly processId: string;
  readonly meters: () => Iterable<KnownMeter>;
  readonly log: Pick<Log, "warn">;
  /** Milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** Default 10 s. */
  readonly intervalMs?: number;
}

export interface UsageWriter {
  /** Writes what is left, for a second at most. */
  close(): Promise<void>;
}

/** What was last seen of a meter. */
interface Seen {
  readonly counts: Counts;
  atMs: number;
  isWritten: boolean;
}

const intervalMsDefault = 10_000;
/** A round ends here: the store is in trouble, and each try may take a second. */
const failuresInARowMax = 3;
/**
 * 100 values a second: with `sync_interval: always` each is an fsync beside those of the events.
 */
const writesInARow = 10;
const pauseMs = 100;
const writesAtOnceAtEnd = 64;
const endMsMax = 1_000;
const warningEveryMs = 60_000;
const noCounts: Counts = {
  accepted: 0,
  storedBytes: 0,
  unknown: 0,
  dropped: 0,
  rateLimitedRequests: 0,
  rateLimitedEvents: 0,
  rateLimitedBytes: 0,
};

export function createUsageWriter(options: UsageWriterOptions): UsageWriter {
  const { connection, processId, meters, log, wallMs, intervalMs = intervalMsDefault } = options;
  const closing = new AbortController();
  const sinceMs = wallMs();
  const seen = new WeakMap<Meter, Seen>();
  let lookedAtMs = sinceMs;
  let bucket: Promise<KV> | undefined;
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  async function keepWriting(): Promise<void> {
    const pause = (ms: number) =>
      delay(ms, undefined, { signal: closing.signal, ref: false }).catch(() => {});
    await pause(intervalMs);
    while (!closing.signal.aborted) {
      let count = 0;
      let failures = 0;
      for (const { key, record, now } of changes()) {
        failures = (await write(key, record, now)) ? 0 : failures + 1;
        if (++count % writesInARow === 0) await pause(pauseMs);
        if (closing.signal.aborted || failures >= failuresInARowMax) break;
      }
      await pause(intervalMs);
    }
  }

  /** Gives the meters whose counts are not written yet. */
  function* changes(): Generator<{ key: string; record: UsageRecord; now: Seen }> {
    for (const { projectId, meter } of lookAtAll()) {
      const before = seen.get(meter)!;
      const { counts } = meter;
      const atMs = wallMs();
      if (before.isWritten && areSame(counts, before.counts)) {
        before.atMs = atMs;
        continue;
      }
      const now = { counts, atMs, isWritten: false };
      seen.set(meter, now);
      const lately = {
        seconds: (atMs - before.atMs) / 1_000,
        accepted: counts.accepted - before.counts.accepted,
        rateLimited: counts.rateLimitedEvents - before.counts.rateLimitedEvents,
      };
      yield {
        key: usageKey(projectId, processId),
        record: { ...counts, sinceMs, atMs, lately },
        now,
      };
    }
  }

  /**
   * A meter that is new has counted since the last look at the most. All are looked at before any
   * is written, because a round may end early and the next one would not know since when.
   */
  function lookAtAll(): KnownMeter[] {
    const all = [...meters()];
    for (const { meter } of all) {
      if (!seen.has(meter))
        seen.set(meter, { counts: noCounts, atMs: lookedAtMs, isWritten: true });
    }
    lookedAtMs = wallMs();
    return all;
  }

  async function write(key: string, record: UsageRecord, now: Seen): Promise<boolean> {
    try {
      bucket ??= openUsageBucket(connection, options);
      await (await bucket).put(key, usageValue(record));
      now.isWritten = true;
      return true;
    } catch (error) {
      // It may have been deleted: the next try makes sure of it.
      bucket = undefined;
      if (performance.now() - warnedAtMs >= warningEveryMs) {
        warnedAtMs = performance.now();
        log.warn(
          { reason: (error as Error).message },
          "the usage record cannot be written, trying again",
        );
      }
      return false;
    }
  }

  async function writeRest(): Promise<void> {
    await writing;
    const rest = [...changes()];
    for (let from = 0; from < rest.length; from += writesAtOnceAtEnd) {
      const some = rest.slice(from, from + writesAtOnceAtEnd);
      const written = await Promise.all(
        some.map(({ key, record, now }) => write(key, record, now)),
      );
      if (!written.includes(true)) return;
    }
  }

  const writing = keepWriting();
  async function close(): Promise<void> {
    closing.abort();
    const written = new AbortController();
    const tooLate = delay(endMsMax, undefined, { signal: written.signal }).catch(() => {});
    await Promise.race([writeRest(), tooLate]);
    written.abort();
  }
  return { close };
}

function areSame(left: Counts, right: Counts): boolean {
  // Nothing else changes without one of these.
  const names = ["accepted", "unknown", "dropped", "rateLimitedRequests"] as const;
  return names.every((name) => left[name] === right[name]);
}
