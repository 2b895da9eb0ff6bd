// Adds the uuid of the person to each event of a batch. The batch waits until the effects have
// applied its events. So if an event has no uuid, it has no person.

import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { storedIdText } from "../../../records/distinct-id.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { SinkBatch } from "../sink-target.ts";
import { type NeededMessage, neededOf, notApplied, type PersonSource } from "./applied-check.ts";

interface EventPersonsOptions {
  readonly source: PersonSource;
  readonly log: Pick<Log, "warn">;
  /** If the effects read a different stream for this time in ms, the sink starts again. */
  readonly otherStreamMsMax?: number;
  readonly reportAfterMs?: number;
}

const retryMsMin = 10;
const retryMsMax = 200;
const sayAgainMs = 30_000;
const eventsAtOnce = 10_000;

class OtherStreamError extends Error {
  override name = "OtherStreamError";
}

export class EventPersons {
  readonly #source: PersonSource;
  readonly #warning: SparseWarning;
  readonly #otherStreamMsMax: number;
  readonly #reportAfterMs: number;
  #sinceMonotonicMs: number | undefined;
  #why: string | undefined;

  constructor({
    source,
    log,
    otherStreamMsMax = 60_000,
    reportAfterMs = 5_000,
  }: EventPersonsOptions) {
    this.#source = source;
    this.#warning = new SparseWarning(log, sayAgainMs);
    this.#otherStreamMsMax = otherStreamMsMax;
    this.#reportAfterMs = reportAfterMs;
  }

  get waitSeconds(): number {
    return this.#waitMs / 1_000;
  }

  get fault(): string | undefined {
    if (this.#why === undefined || this.#waitMs < this.#reportAfterMs) return undefined;
    return `waiting until \`penstock effects\` has applied the events of the batch: ${this.#why}`;
  }

  get #waitMs(): number {
    return this.#sinceMonotonicMs === undefined ? 0 : performance.now() - this.#sinceMonotonicMs;
  }

  /** Adds the uuids. Returns false if the signal aborts before all uuids are added. */
  async fill(batch: SinkBatch, signal: AbortSignal): Promise<boolean> {
    const events = batch.events.filter(mayHavePerson);
    if (events.length === 0) return true;
    const needed = neededOf(batch, events);
    this.#sinceMonotonicMs = performance.now();
    let pauseMs = retryMsMin;
    try {
      while (!signal.aborted) {
        this.#why = await this.#tried(events, needed);
        if (this.#why === undefined) return true;
        if (this.#waitMs > this.#reportAfterMs)
          this.#warning.warn(
            { reason: this.#why },
            "sink waiting: `penstock effects` has not applied these events yet",
          );
        await pauseUntilAborted(pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, retryMsMax);
      }
      return false;
    } finally {
      this.#sinceMonotonicMs = undefined;
      this.#why = undefined;
    }
  }

  async #tried(
    events: readonly SinkRecord[],
    needed: readonly NeededMessage[],
  ): Promise<string | undefined> {
    try {
      const missing = notApplied(needed, await this.#source.reached(needed));
      if (missing === undefined) {
        await this.#setUuids(events);
        return undefined;
      }
      if (missing.isOther && this.#waitMs > this.#otherStreamMsMax)
        throw new OtherStreamError(`${missing.why}: checking the streams again`);
      return missing.why;
    } catch (error) {
      if (error instanceof StoreError) return error.message;
      throw error;
    }
  }

  async #setUuids(events: readonly SinkRecord[]): Promise<void> {
    for (let from = 0; from < events.length; from += eventsAtOnce) {
      const some = events.slice(from, from + eventsAtOnce);
      const byProject = Map.groupBy(some, ({ projectId }) => projectId);
      const ids = [...byProject].map(([projectId, own]) => {
        const distinctIds = [...new Set(own.map(({ distinctId }) => distinctId))];
        return { projectId, distinctIds };
      });
      const question = ids.map(({ projectId, distinctIds }) => {
        return { projectId, distinctIds: distinctIds.map(storedIdText) };
      });
      const found = await this.#source.personUuids(question);
      let at = 0;
      for (const { projectId, distinctIds } of ids) {
        const uuids = new Map(distinctIds.map((id) => [id, found[at++] ?? ""]));
        for (const event of byProject.get(projectId)!)
          event.personUuid = uuids.get(event.distinctId)!;
      }
    }
  }
}

/** Returns true if the event may have a person. A group identify event never creates a person. */
function mayHavePerson({ origin }: SinkRecord): boolean {
  return origin.personProfile && origin.kind !== "group_identify";
}
