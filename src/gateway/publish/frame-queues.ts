// Chooses the queue of a frame. The frames of one queue stay in order and wait for each other. A
// queue belongs to one project or, by a setting, to the small live requests of a partition.

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
 * On the live lane, large requests have a queue of their own (`bulk`), so that a single event does
 * not wait for megabytes. History has one kind of queue, to preserve its order.
 */
type QueueKind = Lane | "bulk";

interface FrameQueuesConfig {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly frameScope: FrameScope;
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** Minimum number of frames for an atomic batch. Default: measured. */
  readonly batchesFrom?: number | undefined;
  readonly distance?: Distance;
}

/**
 * Maximum unacknowledged frames of a queue; `Departures` may allow more. For history, 1 preserves
 * the order. For live events, more gave fewer events per second and twice the fsyncs.
 */
const windows: Readonly<Record<QueueKind, number>> = { live: 1, bulk: 1, historical: 1 };

/** Minimum window of a stream, for any number of streams. */
const windowOfStreamMin = 8;

/** A stream gets a share of the process's window, so that no stuck stream uses up all of it. */
function windowOfStream({ framesUnackedMax, partitions }: FrameQueuesConfig): number {
  const part = Math.ceil(framesUnackedMax / partitions);
  return Math.min(framesUnackedMax, Math.max(windowOfStreamMin, part));
}

/**
 * Maximum idle queues per kind, so that a queue is rarely removed while a frame is filled for it.
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
  /** The queues by kind and project. Unused ones are removed in rounds. */
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
    let queue = mixed ? this.#ofPartitions.get(partition) : undefined;
    queue ??= this.#create(kind, partition, mixed ? manyProjects : projectId);
    if (mixed) this.#ofPartitions.set(partition, queue);
    this.#known[kind].set(projectId, { queue, wasRequested: true });
    this.#rounds[kind].step();
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
 * Visits the entries of a map in rotation, two per step, to find obsolete ones without a full scan.
 * With one step per added entry, all are visited before the size of the map has doubled.
 */
class Rounds<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #visit: (value: Value, key: Key) => void;
  #entries: MapIterator<[Key, Value]>;

  /** Creates a rotation. `visit` may delete the entry of its call. */
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
