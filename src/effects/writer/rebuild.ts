// Makes a database anew out of the streams: applies what another database has applied, in the order
// in which it did, because which links are refused depends on that order. Needs all those messages
// to be in the streams still, and says how many are not.

import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../nats/api.ts";
import { type Place, resume } from "../../reading/resume.ts";
import { deletedSequences, type StreamName, storedStream } from "../../reading/stored-stream.ts";
import { StreamErasures } from "../../reading/stream-erasures.ts";
import type { StreamItem } from "../../reading/stream-reader.ts";
import type { PeopleOptions } from "../people/people-options.ts";
import type { EffectsStore } from "../store/port.ts";
import type { IncidentRow, Position, Recording, Run } from "../types.ts";
import type { Applier } from "./applier.ts";
import { CommitChain } from "./commit-chain.ts";
import { batchEventsDefault, newApplier, stepBytesMax, stepEventsMax } from "./new-applier.ts";
import { RebuildError } from "./rebuild-error.ts";
import { RecordedFrames } from "./recorded-frames.ts";

export interface RebuildOptions {
  readonly connection: NatsConnection;
  /** What the names of the streams begin with. */
  readonly prefix: string;
  readonly recording: Recording;
  /** Open and empty. */
  readonly into: EffectsStore;
  /** Goes on without what the streams no longer hold. */
  readonly acceptMissing?: boolean;
  readonly bytesMax?: number;
  readonly batchEventsMax?: number;
  readonly duplicatesBytesMax?: number;
  readonly people?: PeopleOptions;
  /** For how long NATS may be away. */
  readonly patienceMs?: number;
  /** Told now and then how many messages are applied. */
  readonly onProgress?: (messages: number) => void;
}

interface Rebuilt {
  readonly messages: number;
  /** How many the streams no longer hold, of those that had been applied. */
  readonly missing: number;
}

const questionMs = 5_000;
const framesBytesDefault = 64 * 1_048_576;
const patienceMsDefault = 120_000;

/** Rejects with a RebuildError when it is not possible. */
export async function rebuild(options: RebuildOptions): Promise<Rebuilt> {
  if ((await options.into.lastCommit()) !== 0)
    throw new RebuildError("rebuild: the new database is not empty");
  const held = await heldRuns(options).catch((error: Error) => {
    throw new RebuildError(`rebuild: NATS does not say what it holds: ${error.message}`);
  });
  if (held.missing > 0 && options.acceptMissing !== true)
    throw new RebuildError(
      `rebuild: the streams no longer hold ${held.missing} of the messages that were applied: what came of them would be gone. Keep the old database, or accept that it is so`,
    );
  const messages = await new Rebuilding(options, held.runs).run();
  return { messages, missing: messagesOf(options.recording.runs) - messages };
}

function messagesOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { from, to }) => sum + to - from + 1, 0);
}

interface Held {
  readonly runs: readonly Run[];
  /** Without those that are found to be missing when they are read. */
  readonly missing: number;
}

/** What of a stream can be read. */
interface Bounds {
  readonly first: number;
  last: number;
  readonly deleted: readonly number[];
  /** Before the first one: erased, and there in their places; the last comes first. */
  readonly standing: readonly number[];
}

/** The parts of the runs that can be read from the streams. */
async function heldRuns({ connection, recording }: RebuildOptions): Promise<Held> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  const bounds = new Map<string, Bounds>();
  for (const position of recording.positions) {
    const { stream } = position;
    const asked = storedStream(manager, stream);
    const erasures = new StreamErasures(manager, stream);
    const state = await erasures.stateFrom(1);
    if (state === undefined) continue;
    const { place } = await resume(position, asked, state, { acceptExpired: true });
    // In a later epoch, what is behind the place has nothing to do with what was applied.
    const isAnother = place.epoch !== position.epoch;
    const last = isAnother ? place.sequence : state.lastSequence;
    const erased = await erasures.learned(1, state.created);
    const gone = await deletedSequences(manager, stream);
    const deleted: number[] = [];
    for (const sequence of gone)
      if ((await erased.placeOf(sequence)) === undefined) deleted.push(sequence);
    const standing: number[] = [];
    for await (const sequence of erased.standing(state.firstSequence, 1)) standing.push(sequence);
    bounds.set(stream, { first: state.firstSequence, last, deleted, standing: standing.reverse() });
  }
  const runs: Run[] = [];
  let deletedInRuns = 0;
  const later = new Map<string, Run>();
  for (const run of recording.runs.toReversed()) {
    const bound = bounds.get(run.stream) ?? { first: 1, last: 0, deleted: [], standing: [] };
    const behind = later.get(run.stream);
    // Numbers that were handed out again in a later epoch mean something else now.
    if (behind !== undefined && behind.epoch > run.epoch)
      bound.last = Math.min(bound.last, behind.from - 1);
    later.set(run.stream, run);
    const from = Math.max(run.from, bound.first);
    const to = Math.min(run.to, bound.last);
    if (to >= from) {
      runs.push({ ...run, from, to });
      deletedInRuns += countBelow(bound.deleted, to + 1) - countBelow(bound.deleted, from);
    }
    for (const one of bound.standing)
      if (one >= run.from && one <= to) runs.push({ ...run, from: one, to: one });
  }
  const missing = messagesOf(recording.runs) - messagesOf(runs) + deletedInRuns;
  return { runs: runs.reverse(), missing };
}

/** How many of these, which are in order, are smaller. */
function countBelow(sequences: readonly number[], limit: number): number {
  let [low, high] = [0, sequences.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sequences[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Rebuilding {
  readonly #options: RebuildOptions;
  readonly #runs: readonly Run[];
  readonly #applier: Applier;
  readonly #positions: ReadonlyMap<string, Position>;
  readonly #chain: CommitChain;
  #step: StreamItem[] = [];
  #stepEvents = 0;
  #stepBytes = 0;
  #batchEvents = 0;
  #messages = 0;

  constructor(options: RebuildOptions, runs: readonly Run[]) {
    this.#options = options;
    this.#runs = runs;
    const { into: store, prefix, duplicatesBytesMax, people, recording } = options;
    this.#positions = new Map(recording.positions.map((one) => [one.stream, one]));
    this.#chain = new CommitChain(store);
    this.#applier = newApplier({
      ...{ store, prefix, duplicatesBytesMax, people },
      streams: recording.positions,
      writePart: async (changes) => await this.#chain.write(await changes(), true),
    });
  }

  async run(): Promise<number> {
    const { connection, bytesMax = framesBytesDefault, recording } = this.#options;
    const { patienceMs = patienceMsDefault } = this.#options;
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    const frames = new RecordedFrames({ connection, manager, bytesMax, patienceMs });
    this.#applier.begin({ positions: [], incidents: [], largeProperties: [] });
    try {
      const epochs = new Map<string, number>();
      for (const run of this.#runs) {
        if (epochs.get(run.stream) !== run.epoch) await this.#moveTo(run, frames);
        epochs.set(run.stream, run.epoch);
        await this.#applyRun(run, frames);
      }
      this.#checkMissing();
      // What is gone behind the last message that was applied is not to be looked for again.
      this.#step.push(...recording.positions.map((position) => placeItem(position, position)));
      await this.#commit(recording.incidents);
    } finally {
      frames.close();
    }
    return this.#messages;
  }

  /** Some leave while others are read, and not all that are gone can be named beforehand. */
  #checkMissing(): void {
    const { recording, acceptMissing } = this.#options;
    const missing = messagesOf(recording.runs) - this.#messages;
    if (missing === 0 || acceptMissing === true) return;
    throw new RebuildError(
      `rebuild: ${missing} of the messages that were applied were not in the streams when they were to be read: the new database is without them, and not to be used. Keep the old one; or accept that it is so, and begin again with an empty one`,
    );
  }

  /** A stream comes for the first time, or became another one. */
  async #moveTo(run: Run, frames: RecordedFrames): Promise<void> {
    const position = this.#positions.get(run.stream);
    if (position === undefined)
      throw new RebuildError(`rebuild: there is no position of the stream ${run.stream}`);
    const { created } = position;
    const place = { epoch: run.epoch, created, sequence: run.from - 1, trail: [] };
    const { into } = this.#options;
    this.#step.push(placeItem(position, place));
    await this.#commit([]);
    if (!this.#applier.isStreamReplaced) return;
    const positions = await into.positions();
    const largeProperties = await into.largeProperties();
    this.#applier.begin({ positions, incidents: [], largeProperties });
    for (const { stream, epoch, duplicatesFrom, sequence: to, ...rest } of positions) {
      const name = { stream, lane: rest.lane, partition: rest.partition };
      const again = { name, epoch, from: duplicatesFrom[0], to, isAgain: true };
      for await (const item of frames.read(again)) await this.#applier.apply([item]);
    }
  }

  async #applyRun({ stream, epoch, from, to }: Run, frames: RecordedFrames): Promise<void> {
    const { batchEventsMax = batchEventsDefault } = this.#options;
    const { lane, partition } = this.#positions.get(stream)!;
    const name = { stream, lane, partition };
    for await (const item of frames.read({ name, epoch, from, to, isAgain: false })) {
      this.#step.push(item);
      this.#stepEvents += item.events;
      this.#stepBytes += item.frame.data.length;
      this.#batchEvents += item.events;
      this.#messages++;
      const isLong = this.#stepEvents >= stepEventsMax || this.#stepBytes >= stepBytesMax;
      if (isLong) await this.#apply();
      if (this.#batchEvents >= batchEventsMax || this.#applier.isFull) await this.#commit([]);
    }
  }

  async #apply(): Promise<void> {
    const step = this.#step;
    [this.#step, this.#stepEvents, this.#stepBytes] = [[], 0, 0];
    await this.#applier.apply(step);
  }

  /** Applies what has been read, and commits all that is applied. */
  async #commit(incidents: readonly IncidentRow[]): Promise<void> {
    this.#batchEvents = 0;
    await this.#apply();
    const { hasChanges } = this.#applier;
    if (!hasChanges && incidents.length === 0) return;
    const changes = await this.#applier.changes();
    // What was announced then is not announced again.
    await this.#chain.write({ ...changes, incidents, outbox: [] }, false);
    this.#applier.committed();
    this.#options.onProgress?.(this.#messages);
  }
}

function placeItem(
  { stream, lane, partition }: StreamName,
  { epoch, created, sequence, trail }: Place,
): StreamItem {
  const name = { stream, lane, partition };
  const place = { epoch, created, sequence, trail };
  return { kind: "place", name, place, incidents: [] };
}
