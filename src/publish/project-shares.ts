// How much of each stream one project may fill, so that a flood of one is that one's 503 and nobody else's. The threshold moves with the
// room that is left, as in the shared buffers of switches: a project may add while what it has is at most so many times what is free.
// What it has is asked of the stream, now and then and for the few that matter, never kept in a ledger that purges or restarts falsify.

import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { Problem } from "../errors.ts";
import type { Lane, ProjectShares } from "../types.ts";
import type { NatsLink } from "./connection.ts";
import type { FrameScope } from "./frame-queues.ts";
import { lanes, manyProjects, partitionOf, streamName, subjectOf } from "./subject.ts";

export interface ProjectSharesOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    /** Per cent of a stream that one project can fill beside others that have little; 100 for no such limit. */
    readonly projectShare: number;
  };
  /** Whether there is anybody to keep room for. */
  readonly severalProjects: () => boolean;
  readonly everyMs?: number;
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
  bytes: number;
  /** 0 until it is known; Infinity without a limit. */
  bytesMax: number;
  /** Looks that have come to their end. */
  looks: number;
  /** Acknowledged to this process since the stream was asked. */
  acked: number;
  /** Acknowledged to this process while about as much came as the stream holds: whose part of shared messages is how large. */
  ackedLately: number;
  /** What `acked` has to come to for the shares to be judged again. */
  judgeAt: number;
  isAsking: boolean;
}

const everyMsDefault = 15_000;
const askTimeoutMs = 2_000;
/** Up to this part of a stream nobody is near a share, unless the share is as small. */
const quietPartMax = 1 / 4;
/** After this part of a stream it is asked again, without waiting for the timer. */
const askPart = 1 / 64;
const judgePart = 1 / 512;
/** Projects that are counted at a time: those that added most. */
const countedMax = 8;
const samplesMax = 6;
/** What a message takes in a stream's file beside its subject, headers and payload. */
const messageOverheadBytes = 30;
const projectFull: Problem = {
  code: "project_full",
  detail: "The project has filled its share of the store: older events have to leave it first",
  retryAfterMs: 30_000,
};

export function createProjectShares(options: ProjectSharesOptions): WatchedShares {
  const { link, config, severalProjects, everyMs = everyMsDefault } = options;
  const { subjectPrefix, partitions, frameScope, projectShare } = config;
  const timesFree = projectShare / (100 - projectShare);
  const isOff = projectShare >= 100;
  const quietPart = Math.min(quietPartMax, projectShare / 100);
  const streams = new Map<Lane, Stream[]>(
    lanes.map((lane) => [lane, Array.from({ length: partitions }, (_, at) => newStream(lane, at))]),
  );
  let over = 0;
  /** Where the last lines went: requests of one project follow one another, since they share frames. */
  let last: { lane: Lane; stream: Stream; fill: Fill } | undefined;

  function newStream(lane: Lane, partition: number): Stream {
    const name = streamName(subjectPrefix, lane, partition);
    const nothing = { bytes: 0, bytesMax: 0, looks: 0, acked: 0, ackedLately: 0, judgeAt: 0, isAsking: false };
    return { name, lane, partition, fills: new Map(), ...nothing };
  }

  function streamOf(lane: Lane, projectId: string): Stream {
    return streams.get(lane)![partitions === 1 ? 0 : partitionOf(projectId, partitions)]!;
  }

  function stored(lane: Lane, projectId: string, bytes: number): void {
    if (isOff) return;
    if (last === undefined || last.lane !== lane || last.fill.projectId !== projectId) last = placeOf(lane, projectId);
    const { stream, fill } = last;
    fill.acked += bytes;
    fill.ackedLately += bytes;
    stream.acked += bytes;
    stream.ackedLately += bytes;
    if (stream.acked < stream.judgeAt) return;
    stream.judgeAt = stream.acked + stream.bytesMax * judgePart;
    judge(stream);
    if (stream.acked >= stream.bytesMax * askPart) void ask(stream);
  }

  function placeOf(lane: Lane, projectId: string): { lane: Lane; stream: Stream; fill: Fill } {
    const stream = streamOf(lane, projectId);
    let fill = stream.fills.get(projectId);
    if (fill === undefined) {
      fill = { projectId, counted: 0, countedIn: 0, acked: 0, ackedLately: 0, isOver: false };
      stream.fills.set(projectId, fill);
    }
    return { lane, stream, fill };
  }

  /** Says anew who is over, from what was counted in the last look and what has come since. */
  function judge(stream: Stream): void {
    if (stream.bytesMax === 0) return;
    const all = stream.bytes + stream.acked;
    const mayHave = timesFree * Math.max(0, stream.bytesMax - all);
    const isHeld = severalProjects();
    for (const fill of stream.fills.values()) {
      // Of what an older count found much may have left the stream since: it makes nobody be over, though who is stays so by it.
      const counts = fill.countedIn >= stream.looks || fill.isOver;
      const has = counts ? Math.min(fill.counted + fill.acked, all) : Math.min(fill.acked, stream.acked);
      const isOver = isHeld && has > mayHave;
      if (isOver !== fill.isOver) over += isOver ? 1 : -1;
      fill.isOver = isOver;
    }
  }

  async function ask(stream: Stream): Promise<void> {
    if (stream.isAsking || !link.connected) return;
    stream.isAsking = true;
    try {
      const jsm = await jetstreamManager(link.connection, { checkAPI: false, timeout: askTimeoutMs });
      const { acked } = stream;
      const info = await jsm.streams.info(stream.name);
      stream.bytes = info.state.bytes;
      stream.bytesMax = info.config.max_bytes > 0 ? info.config.max_bytes : Number.POSITIVE_INFINITY;
      stream.acked -= acked;
      settle(stream);
      if (stream.bytes > stream.bytesMax * quietPart) {
        try {
          for (const fill of toCount(stream)) await count(jsm, stream, fill);
        } finally {
          stream.looks++;
        }
      }
    } catch {
      // What is known stays; that JetStream does not answer is said elsewhere.
    } finally {
      stream.isAsking = false;
      stream.judgeAt = stream.acked + stream.bytesMax * judgePart;
      judge(stream);
    }
  }

  /** Forgets what the stream has told to be no more: what was added adds up, but what has left is not told project by project. */
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

  /** Those that are over, the longest uncounted first, and of the others those that have or added most. */
  function toCount(stream: Stream): Fill[] {
    const all = [...stream.fills.values()].filter((fill) => fill.isOver || fill.acked > 0);
    const rank = (left: Fill, right: Fill): number => {
      if (left.isOver !== right.isOver) return left.isOver ? -1 : 1;
      if (left.isOver) return left.countedIn - right.countedIn;
      return right.counted + right.acked - left.counted - left.acked;
    };
    return all.sort(rank).slice(0, countedMax);
  }

  async function count(jsm: JetStreamManager, stream: Stream, fill: Fill): Promise<void> {
    const { acked } = fill;
    let bytes = await bytesUnder(jsm, stream, fill.projectId);
    if (frameScope === "partition" && stream.lane === "live" && stream.ackedLately > 0) {
      // Of messages that hold several projects' events, what this process has stored says whose part is how large.
      bytes += ((await bytesUnder(jsm, stream, manyProjects)) * fill.ackedLately) / stream.ackedLately;
    }
    fill.counted = bytes;
    fill.countedIn = stream.looks + 1;
    fill.acked -= acked;
  }

  /** Messages of a subject, times the mean of some of them. */
  async function bytesUnder(
    jsm: JetStreamManager,
    { name, lane, partition }: Stream,
    projectId: string,
  ): Promise<number> {
    const subject = subjectOf(subjectPrefix, lane, { partition, projectId });
    const { state } = await jsm.streams.info(name, { subjects_filter: subject });
    const messages = state.subjects?.[subject] ?? 0;
    return messages === 0 ? 0 : messages * (await meanBytes(jsm, name, { subject, state }));
  }

  async function meanBytes(
    jsm: JetStreamManager,
    name: string,
    { subject, state }: Pick<StreamInfo, "state"> & { subject: string },
  ): Promise<number> {
    const span = state.last_seq - state.first_seq + 1;
    let bytes = 0;
    let found = 0;
    for (let sample = 0; sample < samplesMax; sample++) {
      const seq = state.first_seq + Math.floor(((sample + Math.random()) * span) / samplesMax);
      const message = await jsm.direct.getMessage(name, { seq, next_by_subj: subject }).catch(() => null);
      if (message === null) continue;
      bytes += message.data.length + subject.length + messageOverheadBytes + headerBytes(message.header);
      found++;
    }
    return found > 0 ? bytes / found : state.bytes / Math.max(1, state.messages);
  }

  const timer = setInterval(() => {
    for (const ofLane of streams.values()) {
      for (const stream of ofLane) if (stream.fills.size > 0) void ask(stream);
    }
  }, everyMs).unref();

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

/** As they are in the message, with the names and marks that the server answers beside them left out. */
function headerBytes(header: Iterable<[string, string[]]>): number {
  let bytes = 12;
  for (const [name, values] of header) {
    if (!/^Nats-(Stream|Subject|Sequence|Time-Stamp|Num-Pending|Last-Sequence)/.test(name)) {
      bytes += name.length + (values[0]?.length ?? 0) + 4;
    }
  }
  return bytes;
}
