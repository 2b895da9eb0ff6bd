// Adds the person's uuid to each event of a batch. The batch waits until the effects have applied
// it, so that an event without a person really has none. No uuid is ever guessed.

import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { storedIdText } from "../../../records/distinct-id.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { SinkBatch } from "../sink-target.ts";
import {
  type NeededMessage,
  neededOf,
  notApplied,
  type PersonSource,
  type ProjectIds,
} from "./applied-check.ts";

interface EventPersonsOptions {
  readonly source: PersonSource;
  readonly log: Pick<Log, "warn">;
  /** Time in ms after which everything is read again if the effects read another stream. */
  readonly otherStreamMsMax?: number;
  readonly reportAfterMs?: number;
}

const retryMsMin = 10;
const retryMsMax = 200;
const reportAfterMsDefault = 5_000;
const sayAgainMs = 30_000;
const otherStreamMsDefault = 60_000;
const questionIdsMax = 10_000;
/** Maximum number of cached ids. The cache takes about 20 MB. */
const knownIdsMax = 100_000;

class OtherStreamError extends Error {
  override name = "OtherStreamError";
}

export class EventPersons {
  readonly #source: PersonSource;
  readonly #warning: SparseWarning;
  readonly #otherStreamMsMax: number;
  readonly #reportAfterMs: number;
  #known = new UuidsById();
  #version = "";
  #sinceMonotonicMs: number | undefined;
  #why: string | undefined;

  constructor(options: EventPersonsOptions) {
    this.#source = options.source;
    this.#warning = new SparseWarning(options.log, sayAgainMs);
    this.#otherStreamMsMax = options.otherStreamMsMax ?? otherStreamMsDefault;
    this.#reportAfterMs = options.reportAfterMs ?? reportAfterMsDefault;
  }

  /** Wait of the current batch; 0 if no batch waits. */
  get waitSeconds(): number {
    return this.#waitMs / 1_000;
  }

  /** Undefined until the wait takes long. */
  get fault(): string | undefined {
    if (this.#why === undefined || this.#waitMs < this.#reportAfterMs) return undefined;
    return `waiting for the effects, for the persons of events: ${this.#why}`;
  }

  get #waitMs(): number {
    return this.#sinceMonotonicMs === undefined ? 0 : performance.now() - this.#sinceMonotonicMs;
  }

  /**
   * Sets `personUuid` of the events when the effects have applied them. Returns false if the signal
   * aborts first. Rejects if reading must start again.
   */
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
          this.#warning.warn({ reason: this.#why }, "waiting for the effects");
        await pauseUntilAborted(pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, retryMsMax);
      }
      return false;
    } finally {
      this.#sinceMonotonicMs = undefined;
      this.#why = undefined;
    }
  }

  /** Returns the reason if the uuids cannot be set yet. */
  async #tried(
    events: readonly SinkRecord[],
    needed: readonly NeededMessage[],
  ): Promise<string | undefined> {
    try {
      const { version, answer } = await this.#source.reached(needed);
      const missing = notApplied(needed, answer);
      if (missing === undefined) {
        await this.#setUuids(events, version);
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

  /** `version` is that of the answer which showed that the events are applied. */
  async #setUuids(events: readonly SinkRecord[], version: string): Promise<void> {
    const uuids = new UuidsById();
    for (const ids of questionsOf(this.#unknown(events, uuids, version))) {
      const { version, answer } = await this.#source.personUuids(
        ids.map(({ projectId, distinctIds }) => ({
          projectId,
          distinctIds: distinctIds.map(storedIdText),
        })),
      );
      const known = this.#knownOf(version);
      let at = 0;
      for (const { projectId, distinctIds } of ids) {
        for (const distinctId of distinctIds) {
          const uuid = answer[at++] ?? "";
          uuids.set(projectId, distinctId, uuid);
          if (known.size < knownIdsMax) known.set(projectId, distinctId, uuid);
        }
      }
    }
    for (const event of events)
      event.personUuid = uuids.get(event.projectId, event.distinctId) ?? "";
  }

  /** Returns the ids to query, by project. Writes cached answers to `uuids`. */
  #unknown(
    events: readonly SinkRecord[],
    uuids: UuidsById,
    version: string,
  ): ReadonlyMap<string, readonly string[]> {
    const known = this.#knownOf(version);
    const unknown = new Map<string, string[]>();
    for (const { projectId, distinctId } of events) {
      if (uuids.get(projectId, distinctId) !== undefined) continue;
      const uuid = known.get(projectId, distinctId);
      uuids.set(projectId, distinctId, uuid ?? "");
      if (uuid !== undefined) continue;
      const ids = unknown.get(projectId);
      if (ids === undefined) unknown.set(projectId, [distinctId]);
      else ids.push(distinctId);
    }
    return unknown;
  }

  /** Empties the cache if the version has changed or the cache is full. */
  #knownOf(version: string): UuidsById {
    if (version !== this.#version || this.#known.size >= knownIdsMax) {
      this.#version = version;
      this.#known = new UuidsById();
    }
    return this.#known;
  }
}

/** Whether the effects create a person for the event. A group identify creates none. */
function mayHavePerson({ personProfile, kind }: SinkRecord): boolean {
  return personProfile && kind !== "group_identify";
}

function* questionsOf(
  idsByProject: ReadonlyMap<string, readonly string[]>,
): Generator<ProjectIds[]> {
  let question: ProjectIds[] = [];
  let room = questionIdsMax;
  for (const [projectId, ids] of idsByProject) {
    for (let from = 0; from < ids.length; ) {
      const distinctIds = ids.slice(from, from + room);
      question.push({ projectId, distinctIds });
      from += distinctIds.length;
      room -= distinctIds.length;
      if (room > 0) continue;
      yield question;
      question = [];
      room = questionIdsMax;
    }
  }
  if (question.length > 0) yield question;
}

/** By project and distinct id; an empty uuid if the id has no person. */
class UuidsById {
  readonly #projects = new Map<string, Map<string, string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(projectId: string, distinctId: string): string | undefined {
    return this.#projects.get(projectId)?.get(distinctId);
  }

  set(projectId: string, distinctId: string, uuid: string): void {
    let ids = this.#projects.get(projectId);
    if (ids === undefined) {
      ids = new Map();
      this.#projects.set(projectId, ids);
    }
    const before = ids.size;
    ids.set(distinctId, uuid);
    this.#size += ids.size - before;
  }
}
