// Chooses the queue of a frame. The frames of one queue stay in order and wait for each other. A
// shared frame may contain lines of any of the queue's requests. A queue belongs to one project or,
// depending on the settings, to the small live requests of a whole partition.

import type { Lane } from "../../platform/base/lane.ts";
import { Rounds } from "../../platform/base/rounds.ts";
import type { FrameScope } from "../../platform/nats/names.ts";
import { manyProjects, partitionOf, subjectOf } from "../../platform/nats/names.ts";
import type { StreamState, StreamStates } from "../../platform/nats/readiness.ts";
import { Departures } from "./departures.ts";
import type { Distance } from "./distance.ts";
import { type Frame, FrameQueue } from "./frame.ts";

/**
 * The kinds of queues. On the live lane, the frames of large requests have their own queue
 * (`bulk`) next to the shared frames, so that a single event does not wait for earlier megabytes.
 * History has a single kind, which preserves its order.
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
 * How many frames a queue may have unacknowledged; `Departures` allows more in two cases. For
 * history a window of 1 preserves the order, also when a frame is retried. For live events it was
 * measured (sync_interval always, 128 concurrent requests, two cores shared with the server):
 * windows of 1, 2 and 4 took 93,000, 77,000 and 80,000 events/s with 27,000, 40,000 and 54,000
 * fsyncs per million. A wider window lets frames overlap, but the additional PubAcks cost as much
 * as that saves, for frames of 512 KiB too. On a slow network two frames are faster (Departures).
 */
const windows: Readonly<Record<QueueKind, number>> = { live: 1, bulk: 1, historical: 1 };

/** Minimum window of a stream, however many streams share the process's window. */
const windowOfStreamMin = 8;

/**
 * Each stream has its part of the process's window. A stream that acknowledges nothing does not use
 * up the window of the others, and after an outage of all streams there are no more frames to retry
 * than the window allows.
 */
function windowOfStream({ framesUnackedMax, partitions }: FrameQueuesConfig): number {
  const part = Math.ceil(framesUnackedMax / partitions);
  return Math.min(framesUnackedMax, Math.max(windowOfStreamMin, part));
}

/**
 * Number of projects' queues of a kind, of some 200 bytes each, that are cached even if idle. So a
 * queue is seldom removed while a request fills a frame for it.
 */
const idleQueuesMax = 4_096;

/** A project's queue of a kind, and whether it was requested since the last visit. */
interface CachedQueue {
  readonly queue: FrameQueue;
  wasRequested: boolean;
}

type CachedQueues = Map<string, CachedQueue>;

export class FrameQueues {
  readonly #config: FrameQueuesConfig;
  readonly #streams: StreamStates;
  /** By project. Queues of projects that no longer send are removed in rounds. */
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

  /** The number of projects that have a queue of the kind. */
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

/** Whether the queue can be removed: it has no frame, neither here nor in flight. */
function isIdle({ busy, ready, unacked, open, sealed }: FrameQueue): boolean {
  return !busy && !ready && unacked === 0 && open === undefined && sealed.length === 0;
}
