// Limits how much of each stream one project may fill, so that a flood from one project makes 503s
// for that project alone. A project may add events while what it has in the stream is within a
// threshold, which moves with the room that is left, as in the shared buffers of switches
// (`share-rule.ts`). What a project has is asked of the stream (`stream-fill.ts`), never kept in a
// ledger that purges or restarts falsify.

import type { Problem } from "../base/errors.ts";
import type { Lane, ProjectShares } from "../base/types.ts";
import type { NatsLink } from "../nats/link.ts";
import { type FrameScope, lanes, partitionOf } from "../nats/names.ts";
import type { ProjectFill } from "./project-fill.ts";
import { StreamFill } from "./stream-fill.ts";

interface ProjectSharesOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    /**
     * Per cent of a stream that one project can fill while the others have little; 100: no limit.
     */
    readonly projectShare: number;
  };
  /** How many projects there are. A single one is not limited: there is nobody to keep room for. */
  readonly projectsKnown: () => number;
  readonly everyMs?: number;
  /**
   * How often a stream is asked while a project is over its share in it, so that the project is let
   * in soon after room appears.
   */
  readonly overEveryMs?: number;
}

interface Place {
  readonly lane: Lane;
  readonly stream: StreamFill;
  readonly fill: ProjectFill;
}

const everyMsDefault = 15_000;
const overEveryMsDefault = 1_000;
const projectFull: Problem = {
  code: "project_full",
  detail: "The project has filled its share of the store: older events have to leave it first",
  retryAfterMs: 30_000,
};

export class WatchedShares implements ProjectShares {
  readonly #streams: ReadonlyMap<Lane, readonly StreamFill[]>;
  readonly #isOff: boolean;
  readonly #timer: NodeJS.Timeout;
  /**
   * The place that was looked up last. The next lines are often the same project's, since its
   * requests share frames.
   */
  #last: Place | undefined;
  #over = 0;

  constructor(options: ProjectSharesOptions) {
    const { everyMs = everyMsDefault, overEveryMs = overEveryMsDefault } = options;
    this.#streams = new Map(lanes.map((lane) => [lane, this.#streamsOf(lane, options)]));
    this.#isOff = options.config.projectShare >= 100;
    const tickMs = Math.min(everyMs, overEveryMs);
    this.#timer = setInterval(() => {
      for (const streams of this.#streams.values())
        for (const stream of streams) stream.tick(tickMs, everyMs);
    }, tickMs).unref();
  }

  /** How many projects are over their share; one that is over in two streams counts twice. */
  get projectsOver(): number {
    return this.#over;
  }

  refusalOf(lane: Lane, projectId: string): Problem | undefined {
    if (this.#over === 0) return undefined;
    return this.#streamOf(lane, projectId).isOver(projectId) ? projectFull : undefined;
  }

  addUnderWay(lane: Lane, projectId: string, bytes: number): void {
    if (this.#isOff) return;
    const { stream, fill } = this.#placeOf(lane, projectId);
    stream.addUnderWay(fill, bytes);
  }

  stored(lane: Lane, projectId: string, bytes: number): void {
    if (this.#isOff) return;
    const { stream, fill } = this.#placeOf(lane, projectId);
    stream.addStored(fill, bytes);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #streamsOf(lane: Lane, options: ProjectSharesOptions): StreamFill[] {
    const { link, config, projectsKnown } = options;
    const { subjectPrefix, partitions, frameScope, projectShare } = config;
    const isMixed = frameScope === "partition" && lane === "live";
    const onOver = (change: number): void => {
      this.#over += change;
    };
    const common = { link, subjectPrefix, lane, isMixed, projectShare, projectsKnown, onOver };
    return Array.from(
      { length: partitions },
      (_, partition) => new StreamFill({ ...common, partition }),
    );
  }

  #placeOf(lane: Lane, projectId: string): Place {
    if (this.#last?.lane === lane && this.#last.fill.projectId === projectId) return this.#last;
    const stream = this.#streamOf(lane, projectId);
    this.#last = { lane, stream, fill: stream.fillOf(projectId) };
    return this.#last;
  }

  #streamOf(lane: Lane, projectId: string): StreamFill {
    const streams = this.#streams.get(lane)!;
    return streams[streams.length === 1 ? 0 : partitionOf(projectId, streams.length)]!;
  }
}
