// Converts frames to commits. It counts each line and applies the effects of the line in memory. It
// can apply the next batch while a commit is being written. The result does not depend on the
// clock.

import { leastOf } from "../../../platform/base/extremes.ts";
import type { Lane } from "../../../platform/base/lane.ts";
import type { Log } from "../../../platform/base/log.ts";
import { TooLargeError } from "../../../platform/base/store-error.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import type { ReaderWords } from "../../stream/resume.ts";
import type { StreamName } from "../../stream/stored-stream.ts";
import type { FrameItem, PositionItem, StreamItem } from "../../stream/stream-reader.ts";
import { DuplicatesBudget } from "../duplicates/duplicates.ts";
import { FrameLines } from "../lines/frame-lines.ts";
import type { LineVisitor, StoredLine } from "../lines/line.ts";
import { type Loaded, People, type PeopleOptions } from "../people/people.ts";
import type { Missing } from "../people/wanted.ts";
import { Spikes } from "../spikes/spikes.ts";
import type { EffectsStore } from "../store/port.ts";
import { noRows } from "../store/rows/flat-commit.ts";
import { lookupBytesMax } from "../store/shared-sql.ts";
import type { Commit, IncidentRow, MemberRow, Position, Rejection } from "../types.ts";
import { Usage } from "../usage/usage.ts";
import { countedBefore, StreamInMemory } from "./stream-in-memory.ts";
import type { Changes } from "./transaction.ts";

interface ApplierOptions {
  readonly store: Pick<
    EffectsStore,
    "members" | "groups" | "groupTypes" | "activeIds" | "activity"
  >;
  readonly writePart: (changes: () => Promise<Changes>) => Promise<void>;
  /** If the changed rows have more bytes, they are written before the end of the batch. */
  readonly changedBytesMax?: number | undefined;
  readonly prefix: string;
  readonly duplicatesBytesMax?: number | undefined;
  readonly streams?: readonly { readonly lane: Lane }[];
  readonly people?: PeopleOptions | undefined;
  readonly log?: Pick<Log, "warn">;
}

type RowStore = Pick<EffectsStore, "members" | "groups" | "groupTypes">;
type Stored = Pick<Commit, "positions" | "incidents" | "largeProperties">;

export interface Counts {
  events: number;
  frames: number;
  duplicates: number;
  rejected: number;
}

export interface Memory {
  readonly cacheBytes: number;
  readonly duplicatesBytes: number;
  readonly duplicatesCoveredMs: number;
}

const changedRowsMax = 20_000;
/** Maximum bytes of changed rows. It is low, because the rows are copied several times. */
const changedBytesDefault = 64 * 1_048_576;
const duplicatesBytesDefault = 256 * 1_048_576;

const queuedMax = 2_000;
const effectsATurn = 100;

export class Applier implements LineVisitor {
  readonly counts: Counts = { events: 0, frames: 0, duplicates: 0, rejected: 0 };
  readonly #store: ApplierOptions["store"];
  readonly #writePart: ApplierOptions["writePart"];
  readonly #lines = new FrameLines();
  readonly #people: People;
  readonly #usage = new Usage();
  readonly #spikes: Spikes;
  readonly #budget: DuplicatesBudget;
  readonly #turns = new LoopTurns();
  readonly #changedBytesMax: number;
  readonly #streams = new Map<string, StreamInMemory>();
  readonly #touched = new Set<StreamInMemory>();
  #inFlight: readonly StreamInMemory[] = [];
  #frames = { live: 0, historical: 0 };
  #incidents: IncidentRow[] = [];
  #reported = new Set<string>();
  #stream: StreamInMemory | undefined;
  #isReread = false;
  #isStreamReplaced = false;

  constructor(options: ApplierOptions) {
    const { duplicatesBytesMax: bytesMax = duplicatesBytesDefault, streams = [] } = options;
    this.#store = options.store;
    this.#writePart = options.writePart;
    this.#people = new People(options.people, options.log);
    this.#spikes = new Spikes({ prefix: options.prefix });
    this.#budget = new DuplicatesBudget({ bytesMax, streams });
    this.#changedBytesMax = options.changedBytesMax ?? changedBytesDefault;
  }

  /**
   * Starts from the stored state and discards everything that is not committed. For each stream
   * whose position is unchanged, the hashes of the duplicate detection are kept.
   */
  begin({ positions, incidents, largeProperties }: Stored): void {
    this.#people.begin(largeProperties);
    this.#usage.discard();
    this.#spikes.discard();
    const before = new Map(this.#streams);
    this.#streams.clear();
    for (const position of positions) {
      const { stream, lane, partition } = position;
      const known = before.get(stream);
      if (known?.returnTo(position)) {
        before.delete(stream);
        this.#streams.set(stream, known);
      } else {
        const name = { stream, lane, partition };
        const countedTo = countedBefore(position, incidents);
        this.#streams.set(stream, new StreamInMemory(name, this.#budget, { position, countedTo }));
      }
    }
    for (const stream of before.values()) stream.close();
    this.#touched.clear();
    this.#inFlight = [];
    this.#frames = { live: 0, historical: 0 };
    this.#incidents = [];
    this.#reported = new Set(incidents.map(keyOf));
    this.#isStreamReplaced = false;
  }

  rememberFrom({ stream, sequence, duplicatesFrom }: Position): number {
    return this.#streams.get(stream)?.isWhole ? sequence + 1 : duplicatesFrom[0];
  }

  /**
   * True if a stream was replaced. The writer must then start again after the next commit, because
   * memory contains data of the old stream.
   */
  get isStreamReplaced(): boolean {
    return this.#isStreamReplaced;
  }

  get memory(): Memory {
    const covered = [...this.#streams.values()]
      .filter(({ duplicates }) => duplicates.watermarkMs > 0)
      .map(({ duplicates }) => duplicates.coveredMs);
    return {
      cacheBytes: this.#people.cacheBytes,
      duplicatesBytes: this.#budget.bytes,
      duplicatesCoveredMs: covered.length === 0 ? 0 : leastOf(covered),
    };
  }

  get isFull(): boolean {
    const { changedRows, changedBytes } = this.#people;
    return (
      changedRows >= changedRowsMax ||
      changedBytes >= this.#changedBytesMax ||
      this.#isStreamReplaced
    );
  }

  get hasChanges(): boolean {
    return this.#touched.size > 0;
  }

  async apply(items: readonly StreamItem[]): Promise<void> {
    this.#turns.begin();
    for (const item of items) {
      if (item.kind === "position") this.#moveTo(item);
      else await this.#read(item);
      await this.#turns.breathe();
    }
    await this.#applyPeople();
    await this.#loadCounts();
    this.#spikes.apply();
    await this.#turns.breathe();
  }

  /** Returns the changes. The caller must not apply anything until the promise is fulfilled. */
  async changes(): Promise<Changes> {
    this.#inFlight = [...this.#touched];
    const changes: Changes = {
      ...(await this.#turns.through(this.#people.changes())),
      positions: this.#inFlight.map((stream) => stream.position()),
      frames: this.#frames,
      ...this.#usage.changes(),
      ...this.#spikes.changes(),
      incidents: this.#incidents,
    };
    this.counts.rejected += changes.rejected.length;
    this.#frames = { live: 0, historical: 0 };
    this.#touched.clear();
    this.#incidents = [];
    return changes;
  }

  committed(): void {
    this.#people.committed();
    this.#usage.committed();
    this.#spikes.committed();
    for (const stream of this.#inFlight) stream.committed();
    this.#inFlight = [];
  }

  line(line: StoredLine): void {
    const stream = this.#stream!;
    if (this.#isReread) {
      stream.duplicates.remember(line);
      return;
    }
    const isDuplicate = stream.duplicates.add(line);
    if (line.frame.sequence > stream.countedTo) {
      this.#usage.count(line, isDuplicate);
      this.#spikes.count(line, isDuplicate, stream.duplicates.watermarkMs);
    }
    if (isDuplicate) {
      this.counts.duplicates++;
      return;
    }
    this.counts.events++;
    if (!line.isPlain) this.#people.add(line.effect());
    else if (line.hasPerson && !this.#people.seen(line)) this.#people.touch(line);
  }

  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void {
    if (this.#isReread) return;
    const { lane, partition, epoch, sequence, storedAtMs: atMs } = frame;
    const place = { lane, partition, epoch, sequence, line };
    const event = { eventUuid: "", distinctId: undefined };
    this.#people.reject({ projectId, place, ...event, atMs, ...rejection });
  }

  #moveTo({ name, position, incidents }: PositionItem): void {
    const stream = this.#streamOf(name);
    if (stream.moveTo(position)) this.#isStreamReplaced = true;
    for (const incident of incidents) this.#report({ stream: name.stream, ...incident });
    this.#touched.add(stream);
  }

  #report(incident: IncidentRow): void {
    const key = keyOf(incident);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#incidents.push(incident);
  }

  async #read({ frame, isReread, release }: FrameItem): Promise<void> {
    if (!this.#isStreamReplaced) {
      const stream = this.#streamOf(frame);
      this.#stream = stream;
      this.#isReread = isReread;
      if (!isReread) stream.beginFrame();
      for (const _ of this.#lines.read(frame, this)) {
        if (this.#people.queued >= queuedMax) {
          await this.#applyPeople();
          await this.#writeWhereFull();
        }
        await this.#turns.breathe();
      }
      if (!isReread) this.#end(stream, frame);
    }
    release();
  }

  #end(stream: StreamInMemory, frame: StoredFrame): void {
    stream.endFrame(frame);
    this.counts.frames++;
    this.#touched.add(stream);
    this.#frames[frame.lane]++;
  }

  #streamOf({ stream: name, lane, partition }: StreamName): StreamInMemory {
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = new StreamInMemory({ stream: name, lane, partition }, this.#budget);
      this.#streams.set(name, stream);
    }
    return stream;
  }

  async #applyPeople(): Promise<void> {
    try {
      await this.#loadPeople();
    } catch (error) {
      if (!(error instanceof TooLargeError)) throw error;
      for (const queue of this.#people.takeParts()) {
        queue();
        await this.#loadPeople();
        this.#people.apply();
        await this.#writeWhereFull();
        await this.#turns.breathe();
      }
    }
    while (!this.#people.apply(effectsATurn)) await this.#turns.breathe();
  }

  /** Writes rows early if they fill the memory. A single frame can change that many rows. */
  async #writeWhereFull(): Promise<void> {
    if (this.#people.changedBytes < this.#changedBytesMax) return;
    await this.#writePart(async () => {
      const changes = await this.#turns.through(this.#people.changes());
      this.counts.rejected += changes.rejected.length;
      return { ...noRows, ...changes };
    });
    this.#people.committed();
  }

  async #loadPeople(): Promise<void> {
    const missing = this.#people.missing();
    if (missing === undefined) return;
    this.#people.adopt(await loadRows(this.#store, missing));
  }

  async #loadCounts(): Promise<void> {
    const days = this.#usage.missing();
    this.#usage.adopt(days.length === 0 ? [] : await this.#store.activeIds(days));
    for (let wanted = this.#spikes.missing(); wanted.length > 0; wanted = this.#spikes.missing())
      this.#spikes.adopt(await this.#store.activity(wanted));
  }
}

function keyOf({ stream, kind, epoch, sequence, detail }: IncidentRow): string {
  return JSON.stringify([stream, kind, epoch, sequence, detail]);
}

/** Maximum number of events in a transaction. It is only reached while the writer catches up. */
export const batchEventsDefault = 100_000;
/** Maximum number of events that are applied before the writer yields to the event loop. */
export const stepEventsMax = 2_000;
export const stepBytesMax = 2 * 1_048_576;

const projectsAtOnce = 4;

export async function loadRows(store: RowStore, missing: Missing): Promise<Loaded> {
  const [members, groups, groupTypes] = await Promise.all([
    loadMembers(store, missing.members),
    missing.groups.length === 0 ? [] : store.groups(missing.groups),
    missing.groupTypes.length === 0 ? [] : store.groupTypes(missing.groupTypes),
  ]);
  return { members, groups, groupTypes };
}

async function loadMembers(
  store: RowStore,
  wanted: Missing["members"],
): Promise<readonly MemberRow[]> {
  const left = [...wanted];
  const rows: MemberRow[] = [];
  let bytes = 0;
  const loadNext = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const found = await store.members(...next);
      for (const { person } of found) bytes += person?.propertyBytes ?? 0;
      for (const row of found) rows.push(row);
      if (bytes <= lookupBytesMax) continue;
      left.length = 0;
      throw new TooLargeError("cannot look up rows: their properties are too large together");
    }
  };
  await Promise.all(Array.from({ length: projectsAtOnce }, loadNext));
  return rows;
}

const turnMs = 10;

/** Yields to the event loop during long work, because this process must also answer requests. */
class LoopTurns {
  #sinceMonotonicMs = 0;

  begin(): void {
    this.#sinceMonotonicMs = performance.now();
  }

  async through<Result>(steps: Generator<void, Result>): Promise<Result> {
    this.begin();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await this.breathe();
    }
  }

  async breathe(): Promise<void> {
    if (performance.now() - this.#sinceMonotonicMs <= turnMs) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.begin();
  }
}

export const effectsWords: ReaderWords = {
  action: "`penstock effects run --accept-expired` continues",
  stays: "their effects remain",
  reread: (olderTo) =>
    `usage and spikes count ${olderTo === 0 ? "all of these messages" : `only the messages after ${olderTo}, because older messages may have been counted`}`,
};

/** The words of the effects that `up` runs. */
export const upWords: ReaderWords = {
  ...effectsWords,
  action: "stop `penstock up`: `penstock up --accept-expired` continues",
};
