// How much of each stream one project may fill, so that a flood of one is that one's 503 and nobody
// else's. The threshold moves with the room that is left, as in the shared buffers of switches
// (`share-rule.ts`): a project may add while what it has is within it. What it has is asked of the
// stream, now and then and for the few that matter, never kept in a ledger that purges or restarts
// falsify.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Problem } from "../base/errors.ts";
import type { Lane, ProjectShares } from "../base/types.ts";
import { managerOf } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import type { FrameScope } from "../nats/names.ts";
import { lanes, manyProjects, partitionOf, streamName, subjectOf } from "../nats/names.ts";
import { mayHaveBytes } from "./share-rule.ts";
import { createSubjectBytes, type SubjectBytes } from "./subject-bytes.ts";

export interface ProjectSharesOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    /**
     * Per cent of a stream that one project can fill beside others that have little; 100 for no
     * such limit.
     */
    readonly projectShare: number;
  };
  /** In all. Beside one there is nobody to keep room for. */
  readonly projectsKnown: () => number;
  readonly everyMs?: number;
  /**
   * How often a stream is asked in which a project is over its share, so that it is let in soon
   * after room appears.
   */
  readonly overEveryMs?: number;
}

export interface WatchedShares extends ProjectShares {
  /** Projects over their share, counted once a stream. */
  readonly projectsOver: number;
  close(): void;
}

/** What this process knows of one project in one stream. */
interface Fill {
  readonly projectId: string;
  /** Bytes there were at the last count, and the look that it was part of; 0 before the first. */
  counted: number;
  countedIn: number;
  /** Counts of the stream's projects that had been made before. */
  countedAfter: number;
  /** Bytes acknowledged to this process since then. */
  acked: number;
  /** Of what `ackedLately` of the stream is. */
  ackedLately: number;
  isOver: boolean;
}

interface Stream {
  readonly name: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly fills: Map<string, Fill>;
  readonly subjectBytes: SubjectBytes;
  /** Projects over their share. */
  over: number;
  /** Projects that have something in it, as far as it tells. */
  projects: number;
  bytes: number;
  /** 0 until it is known; Infinity without a limit. */
  bytesMax: number;
  /** Looks that have come to their end; those at whoever is over do not count. */
  looks: number;
  counts: number;
  sinceLookMs: number;
  /** Acknowledged to this process since the stream was asked. */
  acked: number;
  /**
   * Acknowledged to this process while about as much came as the stream holds: whose part of shared
   * messages is how large.
   */
  ackedLately: number;
  /** What `acked` has to come to for the shares to be judged again. */
  judgeAt: number;
  isAsking: boolean;
}

const everyMsDefault = 15_000;
const overEveryMsDefault = 1_000;
const askTimeoutMs = 2_000;
/** Up to this part of a stream nobody is near a share, unless the share is as small. */
const quietPartMax = 1 / 4;
/** After this part of a stream it is asked again, without waiting for the timer. */
const askPart = 1 / 64;
const judgePart = 1 / 512;
/** Projects that are counted in a look of those that are over, and of the others as many. */
const countedMax = 8;
const projectFull: Problem = {
  code: "project_full",
  detail: "The project has filled its share of the store: older events have to leave it first",
  retryAfterMs: 30_000,
};

export function createProjectShares(options: ProjectSharesOptions): WatchedShares {
  const {
    link,
    config,
    projectsKnown,
    everyMs = everyMsDefault,
    overEveryMs = overEveryMsDefault,
  } = options;
  const { subjectPrefix, partitions, frameScope, projectShare } = config;
  const isOff = projectShare >= 100;
  const quietPart = Math.min(quietPartMax, projectShare / 100);
  const streams = new Map<Lane, Stream[]>(
    lanes.map((lane) => [lane, Array.from({ length: partitions }, (_, at) => newStream(lane, at))]),
  );
  let over = 0;
  /**
   * Where the last lines went: requests of one project follow one another, since they share frames.
   */
  let last: { lane: Lane; stream: Stream; fill: Fill } | undefined;

  function newStream(lane: Lane, partition: number): Stream {
    const name = streamName(subjectPrefix, lane, partition);
    const known = {
      over: 0,
      projects: 0,
      bytes: 0,
      bytesMax: 0,
      looks: 0,
      counts: 0,
      sinceLookMs: 0,
    };
    const added = { acked: 0, ackedLately: 0, judgeAt: 0, isAsking: false };
    return {
      name,
      lane,
      partition,
      fills: new Map(),
      subjectBytes: createSubjectBytes(name),
      ...known,
      ...added,
    };
  }

  function streamOf(lane: Lane, projectId: string): Stream {
    return streams.get(lane)![partitions === 1 ? 0 : partitionOf(projectId, partitions)]!;
  }

  function stored(lane: Lane, projectId: string, bytes: number): void {
    if (isOff) return;
    if (last === undefined || last.lane !== lane || last.fill.projectId !== projectId)
      last = placeOf(lane, projectId);
    const { stream, fill } = last;
    fill.acked += bytes;
    fill.ackedLately += bytes;
    stream.acked += bytes;
    stream.ackedLately += bytes;
    if (stream.acked < stream.judgeAt) return;
    stream.judgeAt = stream.acked + stream.bytesMax * judgePart;
    judge(stream);
    if (stream.acked >= stream.bytesMax * askPart) void ask(stream, "all");
  }

  function placeOf(lane: Lane, projectId: string): { lane: Lane; stream: Stream; fill: Fill } {
    const stream = streamOf(lane, projectId);
    let fill = stream.fills.get(projectId);
    if (fill === undefined) {
      fill = {
        projectId,
        counted: 0,
        countedIn: 0,
        countedAfter: 0,
        acked: 0,
        ackedLately: 0,
        isOver: false,
      };
      stream.fills.set(projectId, fill);
    }
    return { lane, stream, fill };
  }

  /** Says anew who is over, from what was counted in the last look and what has come since. */
  function judge(stream: Stream): void {
    if (stream.bytesMax === 0) return;
    const all = stream.bytes + stream.acked;
    const { bytesMax, projects } = stream;
    const mayHave = mayHaveBytes({ bytesMax, bytesFree: bytesMax - all, projects }, projectShare);
    const isHeld = projectsKnown() > 1;
    for (const fill of stream.fills.values()) {
      // Of what an older count found much may have left the stream since: it makes nobody be over,
      // though who is stays so by it.
      const counts = fill.countedIn >= stream.looks || fill.isOver;
      const has = counts
        ? Math.min(fill.counted + fill.acked, all)
        : Math.min(fill.acked, stream.acked);
      const isOver = isHeld && has > mayHave;
      if (isOver === fill.isOver) continue;
      fill.isOver = isOver;
      stream.over += isOver ? 1 : -1;
      over += isOver ? 1 : -1;
    }
  }

  async function ask(stream: Stream, whom: "all" | "over"): Promise<void> {
    if (stream.isAsking || !link.connected) return;
    stream.isAsking = true;
    if (whom === "all") stream.sinceLookMs = 0;
    try {
      const jsm = await managerOf(link.connection, { timeoutMs: askTimeoutMs });
      const { acked } = stream;
      const info = await jsm.streams.info(stream.name);
      stream.bytes = info.state.bytes;
      stream.bytesMax =
        info.config.max_bytes > 0 ? info.config.max_bytes : Number.POSITIVE_INFINITY;
      // Beside messages of several projects the subjects do not tell how many there are.
      stream.projects = isMixed(stream)
        ? projectsKnown()
        : (info.state.num_subjects ?? stream.fills.size);
      stream.acked -= acked;
      settle(stream);
      if (stream.bytes > stream.bytesMax * quietPart) await countIn(jsm, stream, whom);
    } catch {
      // What is known stays; that JetStream does not answer is said elsewhere.
    } finally {
      stream.isAsking = false;
      stream.judgeAt = stream.acked + stream.bytesMax * judgePart;
      judge(stream);
    }
  }

  async function countIn(
    jsm: JetStreamManager,
    stream: Stream,
    whom: "all" | "over",
  ): Promise<void> {
    const inLook = stream.looks + (whom === "all" ? 1 : 0);
    try {
      // Nothing is added by those that are over: the mean of their messages stays about what it
      // was.
      for (const fill of overOf(stream)) await count(jsm, stream, { fill, inLook, isFresh: false });
      if (whom === "over") return;
      for (const fill of addersOf(stream))
        await count(jsm, stream, { fill, inLook, isFresh: true });
    } finally {
      stream.looks = inLook;
    }
  }

  /**
   * Forgets what the stream has told to be no more: what was added adds up, but what has left is
   * not told project by project.
   */
  function settle(stream: Stream): void {
    const isQuiet = stream.bytes <= stream.bytesMax * quietPart;
    const isLong = stream.ackedLately > 2 * stream.bytes;
    if (isLong) stream.ackedLately /= 2;
    for (const fill of stream.fills.values()) {
      if (isLong) fill.ackedLately /= 2;
      if (!isQuiet) continue;
      fill.counted = 0;
      fill.acked = Math.min(fill.acked, stream.acked);
    }
  }

  /** Those that are over, the longest uncounted first. */
  function overOf(stream: Stream): Fill[] {
    if (stream.over === 0) return [];
    const fills = [...stream.fills.values()].filter((fill) => fill.isOver);
    return fills.sort((left, right) => left.countedAfter - right.countedAfter).slice(0, countedMax);
  }

  /** Of the others those that have or added most. */
  function addersOf(stream: Stream): Fill[] {
    const fills = [...stream.fills.values()].filter((fill) => !fill.isOver && fill.acked > 0);
    const rank = (left: Fill, right: Fill) =>
      right.counted + right.acked - left.counted - left.acked;
    return fills.sort(rank).slice(0, countedMax);
  }

  async function count(
    jsm: JetStreamManager,
    stream: Stream,
    { fill, inLook, isFresh }: { fill: Fill; inLook: number; isFresh: boolean },
  ): Promise<void> {
    const { acked } = fill;
    const { lane, partition, subjectBytes } = stream;
    const bytesOf = (projectId: string): Promise<number> =>
      subjectBytes.ask(jsm, subjectOf(subjectPrefix, lane, { partition, projectId }), isFresh);
    let bytes = await bytesOf(fill.projectId);
    if (isMixed(stream) && stream.ackedLately > 0) {
      // Of messages that hold several projects' events, what this process has stored says whose
      // part is how large.
      bytes += ((await bytesOf(manyProjects)) * fill.ackedLately) / stream.ackedLately;
    }
    fill.counted = bytes;
    fill.countedIn = inLook;
    fill.countedAfter = stream.counts++;
    fill.acked -= acked;
  }

  function isMixed({ lane }: Stream): boolean {
    return frameScope === "partition" && lane === "live";
  }

  function tick(stream: Stream): void {
    stream.sinceLookMs += tickMs;
    if (stream.fills.size === 0) return;
    if (stream.sinceLookMs >= everyMs) void ask(stream, "all");
    else if (stream.over > 0) void ask(stream, "over");
  }

  const tickMs = Math.min(everyMs, overEveryMs);
  const timer = setInterval(() => {
    for (const ofLane of streams.values()) ofLane.forEach(tick);
  }, tickMs).unref();

  return {
    stored,
    refusalOf(lane, projectId) {
      if (over === 0) return undefined;
      return streamOf(lane, projectId).fills.get(projectId)?.isOver ? projectFull : undefined;
    },
    get projectsOver() {
      return over;
    },
    close: () => clearInterval(timer),
  };
}
