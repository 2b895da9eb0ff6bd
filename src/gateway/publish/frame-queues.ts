// Chooses the queue of a frame. The frames of one queue stay in order and wait for each other. A
// queue belongs to one project or, depending on the settings, to the small live requests of a whole
// partition. A shared frame may contain lines of any request of its queue.

import type { Lane } from "../../platform/base/lane.ts";
import {
  type FrameScope,
  manyProjects,
  partitionOf,
  subjectOf,
} from "../../platform/nats/names.ts";
import type { StreamState, StreamStates } from "../../platform/nats/readiness.ts";
import { Departures } from "./departures.ts";
import type { Distance } from "./distance.ts";
import { type Frame, FrameQueue } from "./frame.ts";

/**
 * The kinds of queues. On the live lane, the frames of large requests have their own queue
 * (`bulk`), so that a single event does not wait for earlier megabytes. History has one kind, so
 * that its order is preserved.
 */
type QueueKind = Lane | "bulk";

interface FrameQueuesConfig {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly frameScope: FrameScope;
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** Minimum number of frames for an atomic batch. Default: the measured break-even point. */
  readonly batchesFrom?: number | undefined;
  readonly distance?: Distance;
}

/**
 * Maximum number of unacknowledged frames of a queue. `Departures` allows more in two cases. For
 * history, a window of 1 preserves the order even if a frame is retried. For live events it was
 * measured (sync_interval always, 128 concurrent requests, two cores shared with the server):
 * - window 1: 93,000 events/s, 27,000 fsyncs per million events
 * - window 2: 77,000 events/s, 40,000 fsyncs
 * - window 4: 80,000 events/s, 54,000 fsyncs
 * A wider window lets frames overlap, but the additional PubAcks take as much time as that saves,
 * even for frames of 512 KiB. On a slow network two frames are faster (see `Departures`).
 */
const windows: Readonly<Record<QueueKind, number>> = { live: 1, bulk: 1, historical: 1 };

/** Minimum window of a stream, for any number of streams. */
const windowOfStreamMin = 8;

/**
 * Returns the part of the process's window that each stream gets. A stream that acknowledges
 * nothing does not use up the window of the others. After an outage of all streams, no more frames
 * are retried than the process's window allows.
 */
function windowOfStream({ framesUnackedMax, partitions }: FrameQueuesConfig): number {
  const part = Math.ceil(framesUnackedMax / partitions);
  return Math.min(framesUnackedMax, Math.max(windowOfStreamMin, part));
}

/**
 * Maximum number of cached queues per kind that may be idle, of some 200 bytes each. The cache
 * makes it rare that a queue is removed while a request fills a frame for it.
 */
const idleQueuesMax = 4_096;

/** A project's queue of a kind, and whether it was requested since the last round of removals. */
interface CachedQueue {
  readonly queue: FrameQueue;
  wasRequested: boolean;
}

type CachedQueues = Map<string, CachedQueue>;

export class FrameQueues {
  readonly #config: FrameQueuesConfig;
  readonly #streams: StreamStates;
  /**
   * The queues by kind and project. Queues of projects that no longer send are removed in rounds.
   */
  readonly #known: Readonly<Record<QueueKind, CachedQueues>> = {
    live: new Map(),
    bulk: new Map(),
    historical: new Map(),
  };
  readonly #rounds: Readonly<Record<QueueKind, Rounds<string, CachedQueue>>> = {
    live: roundsOf(this.#known.live),
    bulk: roundsOf(this.#known.bulk),
    historical: roundsOf(this.#known.historical),
  };
  readonly #ofPartitions = new Map<number, FrameQueue>();
  readonly #departures: ReadonlyMap<StreamState, Departures<Frame>>;
  // The queue that was requested last, because a request asks for the same queue several times.
  #last: FrameQueue | undefined = undefined;
  #lastKind: QueueKind = "live";
  #lastProjectId = "";

  constructor(config: FrameQueuesConfig, streams: StreamStates) {
    this.#config = config;
    this.#streams = streams;
    const options = { ...config, framesUnackedMax: windowOfStream(config) };
    this.#departures = new Map(
      streams.all.map((stream) => [stream, new Departures<Frame>(stream, options)]),
    );
  }

  /** Returns the number of projects that have a queue of the kind. */
  known(kind: QueueKind): number {
    return this.#known[kind].size;
  }

  of(kind: QueueKind, projectId: string): FrameQueue {
    const last = this.#last;
    if (last !== undefined && this.#lastProjectId === projectId && this.#lastKind === kind)
      return last;
    const known = this.#known[kind].get(projectId);
    if (known !== undefined) known.wasRequested = true;
    const queue = known?.queue ?? this.#open(kind, projectId);
    this.#last = queue;
    this.#lastKind = kind;
    this.#lastProjectId = projectId;
    return queue;
  }

  #open(kind: QueueKind, projectId: string): FrameQueue {
    const { partitions, frameScope } = this.#config;
    const partition = partitionOf(projectId, partitions);
    const mixed = kind === "live" && frameScope === "partition";
    const queue = mixed ? this.#ofPartition(partition) : this.#create(kind, partition, projectId);
    this.#known[kind].set(projectId, { queue, wasRequested: true });
    this.#rounds[kind].step();
    return queue;
  }

  #ofPartition(partition: number): FrameQueue {
    const queue =
      this.#ofPartitions.get(partition) ?? this.#create("live", partition, manyProjects);
    this.#ofPartitions.set(partition, queue);
    return queue;
  }

  #create(kind: QueueKind, partition: number, projectId: string): FrameQueue {
    const lane = kind === "historical" ? "historical" : "live";
    const subject = subjectOf(this.#config.subjectPrefix, lane, { partition, projectId });
    const stream = this.#streams.of(lane, partition);
    return new FrameQueue(stream, this.#departures.get(stream)!, {
      lane,
      subject,
      window: windows[kind],
      background: kind !== "live",
    });
  }
}

function roundsOf(known: CachedQueues): Rounds<string, CachedQueue> {
  return new Rounds(known, (project, projectId) => {
    if (project.wasRequested) project.wasRequested = false;
    else if (known.size > idleQueuesMax && isIdle(project.queue)) known.delete(projectId);
  });
}

/** Returns whether the queue can be removed: it has no frame, neither waiting nor in flight. */
function isIdle({ busy, ready, unacked, open, sealed }: FrameQueue): boolean {
  return !busy && !ready && unacked === 0 && open === undefined && sealed.length === 0;
}

/**
 * Visits the entries of a map in rotation, two per step, to find obsolete entries without a full
 * scan. With one step per added entry, all are visited before the size of the map has doubled.
 */
class Rounds<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #visit: (value: Value, key: Key) => void;
  #entries: MapIterator<[Key, Value]>;

  /** `visit` may delete the entry of its call. */
  constructor(map: ReadonlyMap<Key, Value>, visit: (value: Value, key: Key) => void) {
    this.#map = map;
    this.#visit = visit;
    this.#entries = map.entries();
  }

  step(): void {
    for (let visits = 0; visits < 2; visits++) {
      const next = this.#entries.next();
      if (next.done === true) {
        this.#entries = this.#map.entries();
        return;
      }
      const [key, value] = next.value;
      this.#visit(value, key);
    }
  }
}
