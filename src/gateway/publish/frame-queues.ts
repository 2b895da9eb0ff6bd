// Chooses the queue that a frame goes through. The frames of one queue keep their order and wait
// for each other, and a shared one may hold lines of any of the queue's requests. A queue is for
// one project, or, where the settings say so, for the small live requests of a whole partition.

import type { Lane } from "../../platform/base/lane.ts";
import { Rounds } from "../../platform/base/rounds.ts";
import type { FrameScope } from "../../platform/nats/names.ts";
import { manyProjects, partitionOf, subjectOf } from "../../platform/nats/names.ts";
import type { StreamState, StreamStates } from "../../platform/nats/readiness.ts";
import { Departures } from "./departures.ts";
import type { Distance } from "./distance.ts";
import { type Frame, FrameQueue } from "./frame.ts";

/**
 * The ways that frames take to the store. On the live lane, the frames of large requests go beside
 * the shared ones (`bulk`), so that a single event does not wait for megabytes that came before it.
 * History has one way, which keeps its order.
 */
type Way = Lane | "bulk";

interface FrameQueuesConfig {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly frameScope: FrameScope;
  readonly framesUnackedMax: number;
  readonly monotonicMs: () => number;
  /** So many frames leave together, whatever is measured. Default: where that is faster. */
  readonly batchesFrom?: number | undefined;
  readonly distance?: Distance;
}

/**
 * How many frames a queue may have unacknowledged; `Departures` lets more leave in two cases. For
 * history a window of 1 keeps the order, also when a frame is sent again. For live events it was
 * measured (sync_interval always, 128 requests at a time, two cores shared with the server):
 * windows of 1, 2 and 4 took 93,000, 77,000 and 80,000 events/s with 27,000, 40,000 and 54,000
 * fsyncs per million. A wider window lets frames overlap, but spends on more PubAcks what that
 * gains, for frames of 512 KiB too. Where the way to the store is long, two gain (Departures).
 */
const windows: Readonly<Record<Way, number>> = { live: 1, bulk: 1, historical: 1 };

/** However many streams share the window, each may have so many frames unacknowledged. */
const windowOfStreamMin = 8;

/**
 * Each stream has its part of the process's window. One that acknowledges nothing uses up no other
 * one's, and after a stop of all of them there are not more frames to send again than the window
 * has.
 */
function windowOfStream({ framesUnackedMax, partitions }: FrameQueuesConfig): number {
  const part = Math.ceil(framesUnackedMax / partitions);
  return Math.min(framesUnackedMax, Math.max(windowOfStreamMin, part));
}

/**
 * So many projects' queues of a way, of some 200 bytes each, are kept however idle they are. So a
 * queue is seldom forgotten while a request fills a frame for it.
 */
const idleQueuesMax = 4_096;

/** A project's queue on a way, and whether it was asked for since the last visit. */
interface Known {
  readonly queue: FrameQueue;
  wasAskedFor: boolean;
}

type KnownQueues = Map<string, Known>;

export class FrameQueues {
  readonly #config: FrameQueuesConfig;
  readonly #streams: StreamStates;
  /** By project. The queues of projects that send nothing any more are forgotten in rounds. */
  readonly #known: Readonly<Record<Way, KnownQueues>> = {
    live: new Map(),
    bulk: new Map(),
    historical: new Map(),
  };
  readonly #rounds: Readonly<Record<Way, Rounds<string, Known>>> = {
    live: roundsOf(this.#known.live),
    bulk: roundsOf(this.#known.bulk),
    historical: roundsOf(this.#known.historical),
  };
  readonly #ofPartitions = new Map<number, FrameQueue>();
  readonly #departures: ReadonlyMap<StreamState, Departures<Frame>>;
  // The queue that was asked for last, because a request asks several times for the same.
  #last: FrameQueue | undefined = undefined;
  #lastWay: Way = "live";
  #lastProjectId = "";

  constructor(config: FrameQueuesConfig, streams: StreamStates) {
    this.#config = config;
    this.#streams = streams;
    const options = { ...config, framesUnackedMax: windowOfStream(config) };
    this.#departures = new Map(
      streams.all.map((stream) => [stream, new Departures<Frame>(stream, options)]),
    );
  }

  /** How many projects have a queue on the way. */
  known(way: Way): number {
    return this.#known[way].size;
  }

  of(way: Way, projectId: string): FrameQueue {
    const last = this.#last;
    if (last !== undefined && this.#lastProjectId === projectId && this.#lastWay === way)
      return last;
    const known = this.#known[way].get(projectId);
    if (known !== undefined) known.wasAskedFor = true;
    const queue = known?.queue ?? this.#open(way, projectId);
    this.#last = queue;
    this.#lastWay = way;
    this.#lastProjectId = projectId;
    return queue;
  }

  #open(way: Way, projectId: string): FrameQueue {
    const { partitions, frameScope } = this.#config;
    const partition = partitionOf(projectId, partitions);
    const mixed = way === "live" && frameScope === "partition";
    const queue = mixed ? this.#ofPartition(partition) : this.#create(way, partition, projectId);
    this.#known[way].set(projectId, { queue, wasAskedFor: true });
    this.#rounds[way].step();
    return queue;
  }

  #ofPartition(partition: number): FrameQueue {
    const queue =
      this.#ofPartitions.get(partition) ?? this.#create("live", partition, manyProjects);
    this.#ofPartitions.set(partition, queue);
    return queue;
  }

  #create(way: Way, partition: number, projectId: string): FrameQueue {
    const lane = way === "historical" ? "historical" : "live";
    const subject = subjectOf(this.#config.subjectPrefix, lane, { partition, projectId });
    const stream = this.#streams.of(lane, partition);
    return new FrameQueue(stream, this.#departures.get(stream)!, {
      lane,
      subject,
      window: windows[way],
      background: way !== "live",
    });
  }
}

function roundsOf(known: KnownQueues): Rounds<string, Known> {
  return new Rounds(known, (project, projectId) => {
    if (project.wasAskedFor) project.wasAskedFor = false;
    else if (known.size > idleQueuesMax && isIdle(project.queue)) known.delete(projectId);
  });
}

/** Whether another queue may take its place: it has no frame, neither here nor under way. */
function isIdle({ busy, ready, unacked, open, sealed }: FrameQueue): boolean {
  return !busy && !ready && unacked === 0 && open === undefined && sealed.length === 0;
}
