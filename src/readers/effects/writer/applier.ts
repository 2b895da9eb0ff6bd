// Turns frames into commits: counts each line, applies the effect of each line to people and groups
// in memory, and returns the changes to write. Applies one batch at a time; while a commit is being
// written, the next batch can already be applied. Results do not depend on the clock.

import { leastOf } from "../../../platform/base/extremes.ts";
import type { Lane } from "../../../platform/base/lane.ts";
import type { Log } from "../../../platform/base/log.ts";
import { TooLargeError } from "../../../platform/base/store-error.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import type { StreamName } from "../../stream/stored-stream.ts";
import type { FrameItem, PositionItem, StreamItem } from "../../stream/stream-reader.ts";
import { DuplicatesBudget } from "../duplicates/duplicates-budget.ts";
import { FrameLines } from "../lines/frame-lines.ts";
import type { LineVisitor, StoredLine } from "../lines/line.ts";
import { type Loaded, People } from "../people/people.ts";
import type { PeopleOptions } from "../people/people-options.ts";
import type { Missing } from "../people/wanted.ts";
import { Spikes } from "../spikes/spikes.ts";
import { lookupBytesMax } from "../store/bounds.ts";
import type { EffectsStore } from "../store/port.ts";
import { noRows } from "../store/rows/pieces.ts";
import type { Commit, IncidentRow, MemberRow, Position, Rejection } from "../types.ts";
import { Usage } from "../usage/usage.ts";
import { countedBefore, StreamInMemory } from "./stream-in-memory.ts";
import type { Changes } from "./transaction.ts";

interface ApplierParts {
  readonly lines: FrameLines;
  readonly people: People;
  readonly usage: Usage;
  readonly spikes: Spikes;
  readonly budget: DuplicatesBudget;
}

interface ApplierOptions extends ApplierParts {
  readonly store: Pick<
    EffectsStore,
    "members" | "groups" | "groupTypes" | "activeIds" | "activity"
  >;
  /**
   * Waits until everything before the next commit is committed, then calls `changes` and writes the
   * result as a part of the next commit.
   */
  readonly writePart: (changes: () => Promise<Changes>) => Promise<void>;
  /** Maximum size of changed rows in bytes, above which they are written early. */
  readonly changedBytesMax?: number | undefined;
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
  /** Size of the cached rows of people and groups. */
  readonly cacheBytes: number;
  readonly duplicatesBytes: number;
  /** Milliseconds in which duplicates are detected, in the stream with the shortest period. */
  readonly duplicatesCoveredMs: number;
}

/** Maximum number of rows of people and groups in one commit. */
const changedRowsMax = 20_000;
/**
 * Maximum size of the changed rows in bytes. The rows are copied several times before the store
 * writes them.
 */
const changedBytesDefault = 64 * 1_048_576;

/**
 * Maximum number of effects that wait for their rows to be loaded. Also applies within a frame.
 */
const queuedMax = 2_000;
/** Number of effects that are applied between two checks whether to yield to the event loop. */
const effectsATurn = 100;

export class Applier implements LineVisitor {
  readonly counts: Counts = { events: 0, frames: 0, duplicates: 0, rejected: 0 };
  readonly #options: ApplierOptions;
  readonly #turns = new LoopTurns();
  readonly #changedBytesMax: number;
  readonly #streams = new Map<string, StreamInMemory>();
  readonly #touched = new Set<StreamInMemory>();
  #inFlight: readonly StreamInMemory[] = [];
  #frames = { live: 0, historical: 0 };
  #incidents: IncidentRow[] = [];
  /** Keys of the incidents of the store and of this run, so that an incident is reported once. */
  #reported = new Set<string>();
  /** The stream whose lines are currently read. */
  #stream: StreamInMemory | undefined;
  #isReread = false;
  #isStreamReplaced = false;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#changedBytesMax = options.changedBytesMax ?? changedBytesDefault;
  }

  /**
   * Starts from the stored state and drops everything uncommitted. If the stored position of a
   * stream is the last one that this writer committed, the stream's duplicate detection is retained
   * and need not be restored.
   */
  begin({ positions, incidents, largeProperties }: Stored): void {
    const { people, usage, spikes, budget } = this.#options;
    people.begin(largeProperties);
    usage.discard();
    spikes.discard();
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
        this.#streams.set(stream, new StreamInMemory(name, budget, { position, countedTo }));
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

  /**
   * Returns the sequence of the first frame to deliver again. The frames from there to the position
   * restore duplicate detection.
   */
  rememberFrom({ stream, sequence, duplicatesFrom }: Position): number {
    return this.#streams.get(stream)?.isWhole ? sequence + 1 : duplicatesFrom[0];
  }

  /**
   * Whether a stream was replaced. After the next commit, the writer starts again from the store,
   * so that no data of the old stream is in memory. Frames taken in the same step are read again.
   */
  get isStreamReplaced(): boolean {
    return this.#isStreamReplaced;
  }

  /** Memory that is in use between commits, for gauges. */
  get memory(): Memory {
    const { people, budget } = this.#options;
    const covered = [...this.#streams.values()].map(({ coveredMs }) => coveredMs);
    return {
      cacheBytes: people.cacheBytes,
      duplicatesBytes: budget.bytes,
      duplicatesCoveredMs: covered.length === 0 ? 0 : leastOf(covered),
    };
  }

  /** Whether the changes must be written before more items are applied. */
  get isFull(): boolean {
    const { changedRows, changedBytes } = this.#options.people;
    return (
      changedRows >= changedRowsMax ||
      changedBytes >= this.#changedBytesMax ||
      this.#isStreamReplaced
    );
  }

  get hasChanges(): boolean {
    return this.#touched.size > 0;
  }

  /**
   * Applies a part of a batch. Rejects if the store does not respond; the caller must then call
   * `begin`.
   */
  async apply(items: readonly StreamItem[]): Promise<void> {
    const { usage, spikes } = this.#options;
    this.#turns.begin();
    for (const item of items) {
      if (item.kind === "position") this.#moveTo(item);
      else await this.#read(item);
      await this.#turns.breathe();
    }
    await this.#applyPeople();
    await this.#loadCounts();
    usage.apply();
    spikes.apply();
    await this.#turns.breathe();
  }

  /**
   * Returns the changes to write. The caller must not apply anything until the promise is
   * fulfilled, and must call `committed` or `begin` before the next call.
   */
  async changes(): Promise<Changes> {
    const { people, usage, spikes } = this.#options;
    this.#inFlight = [...this.#touched];
    const changes: Changes = {
      ...(await this.#turns.through(people.changes())),
      positions: this.#inFlight.map((stream) => stream.position()),
      frames: this.#frames,
      ...usage.changes(),
      ...spikes.changes(),
      incidents: this.#incidents,
    };
    this.counts.rejected += changes.rejected.length;
    this.#frames = { live: 0, historical: 0 };
    this.#touched.clear();
    this.#incidents = [];
    return changes;
  }

  committed(): void {
    const { people, usage, spikes } = this.#options;
    people.committed();
    usage.committed();
    spikes.committed();
    for (const stream of this.#inFlight) stream.committed();
    this.#inFlight = [];
  }

  line(line: StoredLine): void {
    const stream = this.#stream!;
    if (this.#isReread) {
      stream.remember(line);
      return;
    }
    const { people, usage, spikes } = this.#options;
    const isDuplicate = stream.isDuplicate(line);
    if (line.frame.sequence > stream.countedTo) {
      usage.count(line, isDuplicate);
      spikes.count(line, isDuplicate, stream.watermarkMs);
    }
    if (isDuplicate) {
      this.counts.duplicates++;
      return;
    }
    this.counts.events++;
    if (!line.isPlain) people.add(line.effect());
    else if (line.hasPerson && !people.seen(line)) people.touch(line);
  }

  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void {
    if (this.#isReread) return;
    const { lane, partition, epoch, sequence, storedAtMs: atMs } = frame;
    const place = { lane, partition, epoch, sequence, line };
    const event = { eventUuid: "", distinctId: undefined };
    this.#options.people.reject({ projectId, place, ...event, atMs, ...rejection });
  }

  #moveTo({ name, position, incidents }: PositionItem): void {
    const stream = this.#streamOf(name);
    if (stream.moveTo(position)) this.#isStreamReplaced = true;
    for (const incident of incidents) this.#tell({ stream: name.stream, ...incident });
    this.#touched.add(stream);
  }

  #tell(incident: IncidentRow): void {
    const key = keyOf(incident);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#incidents.push(incident);
  }

  async #read({ frame, isReread, release }: FrameItem): Promise<void> {
    // Frames after the new position belong to a stream without state in memory.
    if (!this.#isStreamReplaced) {
      const stream = this.#streamOf(frame);
      this.#stream = stream;
      this.#isReread = isReread;
      if (!isReread) stream.beginFrame();
      const { lines, people } = this.#options;
      for (const _ of lines.read(frame, this)) {
        if (people.queued >= queuedMax) {
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
      const { budget } = this.#options;
      stream = new StreamInMemory({ stream: name, lane, partition }, budget);
      this.#streams.set(name, stream);
    }
    return stream;
  }

  /**
   * Applies the queued effects. If their rows are too large together, applies the effects in parts.
   */
  async #applyPeople(): Promise<void> {
    const { people } = this.#options;
    try {
      await this.#loadPeople();
    } catch (error) {
      if (!(error instanceof TooLargeError)) throw error;
      for (const queue of people.takeParts()) {
        queue();
        await this.#loadPeople();
        people.apply();
        await this.#writeWhereFull();
        await this.#turns.breathe();
      }
    }
    while (!people.apply(effectsATurn)) await this.#turns.breathe();
  }

  /**
   * Writes rows of people early, in the same transaction, if the changed rows exceed their maximum
   * size. A frame can change more rows than fit in memory, and its position is written only after
   * the whole frame is applied.
   */
  async #writeWhereFull(): Promise<void> {
    const { people, writePart } = this.#options;
    if (people.changedBytes < this.#changedBytesMax) return;
    await writePart(async () => {
      const changes = await this.#turns.through(people.changes());
      this.counts.rejected += changes.rejected.length;
      return { ...noRows, ...changes };
    });
    people.committed();
  }

  async #loadPeople(): Promise<void> {
    const { people, store } = this.#options;
    const missing = people.missing();
    if (missing === undefined) return;
    people.adopt(await loadRows(store, missing));
  }

  async #loadCounts(): Promise<void> {
    const { usage, spikes, store } = this.#options;
    const days = usage.missing();
    usage.adopt(days.length === 0 ? [] : await store.activeIds(days));
    for (let wanted = spikes.missing(); wanted.length > 0; wanted = spikes.missing())
      spikes.adopt(await store.activity(wanted));
  }
}

function keyOf({ stream, kind, epoch, sequence, detail }: IncidentRow): string {
  return JSON.stringify([stream, kind, epoch, sequence, detail]);
}

/** Maximum number of events in one transaction. Reached only when the writer catches up. */
export const batchEventsDefault = 100_000;
/**
 * Maximum number of events in one step. The writer reads and applies a batch in steps, and yields
 * to the event loop between them.
 */
export const stepEventsMax = 2_000;
export const stepBytesMax = 2 * 1_048_576;

const duplicatesBytesDefault = 256 * 1_048_576;

interface NewApplierOptions
  extends Pick<ApplierOptions, "store" | "writePart" | "changedBytesMax"> {
  /** The first part of the stream names. */
  readonly prefix: string;
  /** Maximum memory for duplicate detection in bytes. */
  readonly duplicatesBytesMax?: number | undefined;
  /** The streams that will be read, if known. Each gets its share of memory from the start. */
  readonly streams?: readonly { readonly lane: Lane }[];
  readonly people?: PeopleOptions | undefined;
  readonly log?: Pick<Log, "warn">;
}

/**
 * Creates the applier of the writer and of a rebuild, so that both apply the same frames in the
 * same way.
 */
export function newApplier(options: NewApplierOptions): Applier {
  const { store, writePart, changedBytesMax, prefix, people, log } = options;
  const { duplicatesBytesMax = duplicatesBytesDefault, streams = [] } = options;
  return new Applier({
    ...{ store, writePart, changedBytesMax },
    lines: new FrameLines(),
    people: new People(people, log),
    usage: new Usage(),
    spikes: new Spikes({ prefix }),
    budget: new DuplicatesBudget({ bytesMax: duplicatesBytesMax, streams }),
  });
}

/** Number of projects whose members are loaded concurrently. */
const projectsAtOnce = 4;

/**
 * Loads the missing rows. Rejects with a TooLargeError if the rows are too large together; the
 * caller must then request fewer.
 */
export async function loadRows(store: RowStore, missing: Missing): Promise<Loaded> {
  // The look-ups are awaited together, so that no rejection is unhandled if several fail.
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
      throw new TooLargeError("look up rows: their properties are too large together");
    }
  };
  await Promise.all(Array.from({ length: projectsAtOnce }, loadNext));
  return rows;
}

/** Maximum milliseconds of work before the applier yields to the event loop. */
const turnMs = 10;

/** Yields to the event loop during long work, because the same process responds to requests. */
class LoopTurns {
  #sinceMonotonicMs = 0;

  /** Starts the time measurement. */
  begin(): void {
    this.#sinceMonotonicMs = performance.now();
  }

  get isOver(): boolean {
    return performance.now() - this.#sinceMonotonicMs > turnMs;
  }

  /**
   * Runs a generator to completion and returns the result. May yield to the event loop after each
   * step.
   */
  async through<Result>(steps: Generator<void, Result>): Promise<Result> {
    this.begin();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await this.breathe();
    }
  }

  /** Yields to the event loop if `turnMs` are over. Called between two steps of the work. */
  async breathe(): Promise<void> {
    if (!this.isOver) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.begin();
  }
}
