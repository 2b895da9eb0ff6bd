// Chooses the queue of a frame. The frames of one queue are sent in order, and wait for each other.
// A queue belongs to one project. If a setting enables it, the small live requests of all projects
// of a partition share one queue.

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
 * On the live lane, large requests have a separate queue (`bulk`), so that a small request does not
 * wait for megabytes. On the historical lane, there is only one kind of queue, because this
 * preserves the order of events.
 */
type QueueKind = Lane | "bulk";

interface FrameQueuesConfig {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly frameScope: FrameScope;
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  readonly batchesFrom?: number | undefined;
  readonly distance?: Distance;
}

const windowOfStreamMin = 8;

function windowOfStream({ framesUnackedMax, partitions }: FrameQueuesConfig): number {
  const part = Math.ceil(framesUnackedMax / partitions);
  return Math.min(framesUnackedMax, Math.max(windowOfStreamMin, part));
}

const idleQueuesMax = 4_096;

export class FrameQueues {
  readonly #config: FrameQueuesConfig;
  readonly #streams: StreamStates;
  readonly #known: Readonly<Record<QueueKind, CachedQueues>> = {
    live: new CachedQueues(),
    bulk: new CachedQueues(),
    historical: new CachedQueues(),
  };
  readonly #ofPartitions = new Map<number, FrameQueue>();
  readonly #departures: ReadonlyMap<StreamState, Departures<Frame>>;

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
    return this.#known[kind].get(projectId) ?? this.#open(kind, projectId);
  }

  #open(kind: QueueKind, projectId: string): FrameQueue {
    const { partitions, frameScope } = this.#config;
    const partition = partitionOf(projectId, partitions);
    const mixed = kind === "live" && frameScope === "partition";
    let queue = mixed ? this.#ofPartitions.get(partition) : undefined;
    queue ??= this.#create(kind, partition, mixed ? manyProjects : projectId);
    if (mixed) this.#ofPartitions.set(partition, queue);
    this.#known[kind].add(projectId, queue);
    return queue;
  }

  #create(kind: QueueKind, partition: number, projectId: string): FrameQueue {
    const lane = kind === "historical" ? "historical" : "live";
    const subject = subjectOf(this.#config.subjectPrefix, lane, { partition, projectId });
    const stream = this.#streams.of(lane, partition);
    return new FrameQueue(stream, this.#departures.get(stream)!, {
      lane,
      subject,
      background: kind !== "live",
    });
  }
}

class CachedQueues {
  readonly #queues = new Map<string, { readonly queue: FrameQueue; wasRequested: boolean }>();
  #rotation = this.#queues.entries();

  get size(): number {
    return this.#queues.size;
  }

  get(projectId: string): FrameQueue | undefined {
    const cached = this.#queues.get(projectId);
    if (cached !== undefined) cached.wasRequested = true;
    return cached?.queue;
  }

  add(projectId: string, queue: FrameQueue): void {
    this.#queues.set(projectId, { queue, wasRequested: true });
    for (let visits = 0; visits < 2; visits++) {
      const next = this.#rotation.next();
      if (next.done === true) {
        this.#rotation = this.#queues.entries();
        return;
      }
      const [id, cached] = next.value;
      if (cached.wasRequested) cached.wasRequested = false;
      else if (this.size > idleQueuesMax && isIdle(cached.queue)) this.#queues.delete(id);
    }
  }
}

function isIdle({ busy, ready, unacked, open, sealed }: FrameQueue): boolean {
  return !busy && !ready && unacked === 0 && open === undefined && sealed.length === 0;
}
