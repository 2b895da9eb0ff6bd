// Gives out the bucket's entries as they come: first the last entry of each project, then every
// change. They come by a watch. Where the server allows no further watch, they come by a poll,
// which asks the leader for the next entry again and again. Must not judge what entries say.

import type { KV } from "@nats-io/kv";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted } from "../../../platform/base/retry.ts";
import { apiCodes, isApiError } from "../../../platform/nats/api.ts";
import type { BucketEntry, BucketReader } from "./bucket-state.ts";

export interface EntrySource extends AsyncIterable<SourcedEntry> {
  stop(): void;
}

interface SourcedEntry extends BucketEntry {
  /** 0: no entry followed this one, as far as the server knew that gave it out. */
  readonly delta?: number;
}

interface EntrySourceOptions {
  readonly bucket: KV;
  readonly reader: BucketReader;
  readonly intervalMs: number;
  readonly log: Pick<Log, "warn">;
}

const pollMsMax = 500;
/** How often a poll tries whether the server allows a watch again. */
const watchAgainMs = 60_000;

export async function openEntrySource({
  bucket,
  reader,
  intervalMs,
  log,
}: EntrySourceOptions): Promise<EntrySource> {
  const watch = await watchIfAllowed(bucket);
  if (watch !== undefined) return watch;
  const reason = "the server has as many watches of the stream as it allows";
  log.warn({ stream: reader.name, reason }, "the project registry is polled, not watched");
  return new PolledEntries({
    reader,
    pollMs: Math.min(intervalMs, pollMsMax),
    async mayWatch() {
      const again = await watchIfAllowed(bucket);
      again?.stop();
      return again !== undefined;
    },
  });
}

async function watchIfAllowed(bucket: KV): Promise<EntrySource | undefined> {
  try {
    return await bucket.watch();
  } catch (error) {
    if (isApiError(error, apiCodes.maximumConsumersLimit)) return undefined;
    throw error;
  }
}

interface PolledEntriesOptions {
  readonly reader: BucketReader;
  readonly pollMs: number;
  readonly mayWatch: () => Promise<boolean>;
}

/**
 * Ends when `mayWatch` returns true: the reader then opens a new source, which is a watch, and
 * reads everything anew.
 */
class PolledEntries implements EntrySource {
  readonly #options: PolledEntriesOptions;
  readonly #stopping = new AbortController();

  constructor(options: PolledEntriesOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopping.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SourcedEntry> {
    const { reader, pollMs, mayWatch } = this.#options;
    const { signal } = this.#stopping;
    let askedMonotonicMs = performance.now();
    for (let sequence = 0; !signal.aborted; ) {
      let entry = await reader.next(sequence + 1);
      while (entry !== undefined && !signal.aborted) {
        sequence = entry.revision;
        const after = await reader.next(sequence + 1);
        yield { ...entry, delta: after === undefined ? 0 : 1 };
        entry = after;
      }
      await pauseUntilAborted(pollMs, signal);
      if (signal.aborted || performance.now() - askedMonotonicMs < watchAgainMs) continue;
      askedMonotonicMs = performance.now();
      if (await mayWatch()) return;
    }
  }
}
