// Chooses the queue that a frame goes through. The frames of one queue keep their order and wait
// for each other, and a shared one may hold lines of any of the queue's requests. A queue is for
// one project, or, where the settings say so, for the small live requests of a whole partition.

import type { Lane } from "../base/types.ts";
import type { FrameScope } from "../nats/names.ts";
import { manyProjects, partitionOf, subjectOf } from "../nats/names.ts";
import type { StreamState, StreamStates } from "../nats/readiness.ts";
import { Departures } from "./departures.ts";
import { FrameQueue } from "./frame.ts";

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
}

/**
 * How many frames a queue may have unacknowledged; `Departures` lets more leave in two cases. For
 * history a window of 1 keeps the order, also when a frame is sent again. For live events it was
 * measured (sync_interval always, 128 requests at a time, two cores shared with the server):
 * windows of 1, 2 and 4 took 93,000, 77,000 and 80,000 events/s with 27,000, 40,000 and 54,000
 * fsyncs per million. A wider window lets frames overlap, but spends on more PubAcks what that
 * gains, for frames of 512 KiB too.
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

export class FrameQueues {
  readonly #config: FrameQueuesConfig;
  readonly #streams: StreamStates;
  /**
   * Each project has one entry per way, of some 200 bytes: there are as many as the registry has
   * projects.
   */
  readonly #known: Readonly<Record<Way, Map<string, FrameQueue>>> = {
    live: new Map(),
    bulk: new Map(),
    historical: new Map(),
  };
  readonly #ofPartitions = new Map<number, FrameQueue>();
  readonly #departures: ReadonlyMap<StreamState, Departures<FrameQueue>>;
  // The queue that was asked for last, because a request asks several times for the same.
  #last: FrameQueue | undefined = undefined;
  #lastWay: Way = "live";
  #lastProjectId = "";

  constructor(config: FrameQueuesConfig, streams: StreamStates) {
    this.#config = config;
    this.#streams = streams;
    const window = windowOfStream(config);
    this.#departures = new Map(
      streams.all.map((stream) => [stream, new Departures<FrameQueue>(window)]),
    );
  }

  of(way: Way, projectId: string): FrameQueue {
    const last = this.#last;
    if (last !== undefined && this.#lastProjectId === projectId && this.#lastWay === way)
      return last;
    const queue = this.#known[way].get(projectId) ?? this.#open(way, projectId);
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
    this.#known[way].set(projectId, queue);
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
