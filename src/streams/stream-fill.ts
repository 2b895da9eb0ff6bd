// Knows what each project has in one stream, as far as that matters, and which projects are over
// their share. The stream is asked now and then, and only for the few projects that matter. Between
// two questions, the bytes that were acknowledged to this process, and those it has under way, are
// added.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Lane } from "../base/types.ts";
import { bytesMaxOf, managerOf } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import { manyProjects, streamName, subjectOf } from "../nats/names.ts";
import { mayHaveBytes } from "./share-rule.ts";
import { SubjectBytes } from "./subject-bytes.ts";

interface StreamFillOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly subjectPrefix: string;
  readonly lane: Lane;
  readonly partition: number;
  /** Whether messages hold events of several projects. */
  readonly isMixed: boolean;
  /** Per cent of the stream that one project can fill while the others have little. */
  readonly projectShare: number;
  /** How many projects there are. A single one is not limited: there is nobody to keep room for. */
  readonly projectsKnown: () => number;
  /** Called with 1 when one project more is over its share, with -1 when one fewer is. */
  readonly onOver: (change: 1 | -1) => void;
}

/**
 * What this process knows of one project in the stream. The sizes are in bytes; `countedIn` and
 * `countedAfter` are numbers of readings and counts.
 */
export interface ProjectFill {
  readonly projectId: string;
  /**
   * `counted`: the bytes at the project's last count. `countedIn`: the reading that this count was
   * part of. Both are 0 before the first count.
   */
  counted: number;
  countedIn: number;
  /** How many counts of this stream's projects had been made before the last count. */
  countedAfter: number;
  /** Bytes acknowledged to this process since the last count. */
  acked: number;
  /** Bytes given to the publisher, and neither acknowledged nor refused yet. */
  underWay: number;
  /** The project's part of the stream's `#ackedLately`. */
  ackedLately: number;
  isOver: boolean;
}

const askTimeoutMs = 2_000;
/**
 * While no more than this part of a stream is filled, no project can be near its share, unless the
 * share itself is smaller.
 */
const quietPartMax = 1 / 4;
/**
 * When this part of a stream has been stored since the last question, the stream is asked again,
 * without waiting for the timer.
 */
const askPart = 1 / 64;
const judgePart = 1 / 512;
/** A reading counts at most this many of the projects over their share, and as many others. */
const countedMax = 8;

export class StreamFill {
  readonly #options: StreamFillOptions;
  readonly #name: string;
  readonly #quietPart: number;
  readonly #subjectBytes: SubjectBytes;
  readonly #fills = new Map<string, ProjectFill>();
  #sinceAllMs = 0;
  /** Projects over their share. */
  #over = 0;
  /** How many projects have something in the stream, as far as the stream tells. */
  #projects = 0;
  #bytes = 0;
  /** The stream's limit in bytes: 0 until it is known, Infinity where there is none. */
  #bytesMax = 0;
  /** How many readings have ended. One of only the projects over their share does not count. */
  #readings = 0;
  #counts = 0;
  /** Bytes acknowledged to this process since the stream was asked. */
  #acked = 0;
  #underWay = 0;
  /**
   * Bytes acknowledged to this process lately, that is while about as much came as the stream
   * holds. A project's part of them stands for its part of the messages that several projects
   * share.
   */
  #ackedLately = 0;
  /** The shares are judged again when `#acked` and `#underWay` together reach this. */
  #judgeAt = 0;
  /** The stream is asked again, before the timer does so, when `#acked` reaches this. */
  #askAt = 0;
  #isAsking = false;

  constructor(options: StreamFillOptions) {
    const { subjectPrefix, lane, partition, projectShare } = options;
    this.#options = options;
    this.#name = streamName(subjectPrefix, lane, partition);
    this.#quietPart = Math.min(quietPartMax, projectShare / 100);
    this.#subjectBytes = new SubjectBytes(this.#name);
  }

  isOver(projectId: string): boolean {
    return this.#fills.get(projectId)?.isOver === true;
  }

  /** What is known of the project, made when there is nothing yet. */
  fillOf(projectId: string): ProjectFill {
    const known = this.#fills.get(projectId);
    if (known !== undefined) return known;
    const counts = { counted: 0, countedIn: 0, countedAfter: 0, acked: 0, underWay: 0 };
    const fill = { projectId, ...counts, ackedLately: 0, isOver: false };
    this.#fills.set(projectId, fill);
    return fill;
  }

  /** `bytes` more of the project are under way to the stream; below 0: that many are no longer. */
  addUnderWay(fill: ProjectFill, bytes: number): void {
    fill.underWay += bytes;
    this.#underWay += bytes;
    if (bytes > 0) this.#judgeIfDue();
  }

  addStored(fill: ProjectFill, bytes: number): void {
    fill.acked += bytes;
    fill.ackedLately += bytes;
    this.#acked += bytes;
    this.#ackedLately += bytes;
    this.#judgeIfDue();
    if (this.#acked >= this.#askAt) void this.#ask("all");
  }

  /**
   * `passedMs` have passed since the last call: asks the stream, if that is due and a project has
   * added something to it.
   */
  tick(passedMs: number, everyMs: number): void {
    this.#sinceAllMs += passedMs;
    if (this.#fills.size === 0) return;
    if (this.#sinceAllMs >= everyMs) void this.#ask("all");
    else if (this.#over > 0) void this.#ask("over");
  }

  /** Asks the stream, unless a question is under way already. Never rejects. */
  async #ask(whom: "all" | "over"): Promise<void> {
    const { link } = this.#options;
    if (this.#isAsking || !link.connected) return;
    this.#isAsking = true;
    if (whom === "all") this.#sinceAllMs = 0;
    try {
      const manager = await managerOf(link.connection, { timeoutMs: askTimeoutMs });
      await this.#readWhole(manager);
      if (this.#bytes > this.#bytesMax * this.#quietPart) await this.#countIn(manager, whom);
    } catch {
      // What is known stays. That JetStream does not answer is reported elsewhere. While the
      // stream's limit is not known, only the timer asks again.
      const more = this.#bytesMax === 0 ? Number.POSITIVE_INFINITY : this.#bytesMax * judgePart;
      this.#askAt = this.#acked + more;
    } finally {
      this.#isAsking = false;
      this.#judge();
    }
  }

  #judgeIfDue(): void {
    if (this.#acked + this.#underWay >= this.#judgeAt) this.#judge();
  }

  /**
   * Decides which projects are over their share, by the last reading's counts and what came since.
   */
  #judge(): void {
    const bytesMax = this.#bytesMax;
    this.#judgeAt = this.#acked + this.#underWay + bytesMax * judgePart;
    if (bytesMax === 0) return;
    const { projectsKnown, projectShare } = this.#options;
    const stored = this.#bytes + this.#acked;
    const bytesFree = bytesMax - stored - this.#underWay;
    const room = { bytesMax, bytesFree, projects: this.#projects };
    const mayHave = mayHaveBytes(room, projectShare);
    const isHeld = projectsKnown() > 1;
    for (const fill of this.#fills.values())
      this.#setOver(fill, isHeld && this.#bytesOf(fill, stored) > mayHave);
  }

  /**
   * The bytes that the project is taken to have. A count from before the last reading puts no
   * project over its share, since much of what it found may have left the stream. It does keep a
   * project over that is over already.
   */
  #bytesOf({ counted, countedIn, acked, underWay, isOver }: ProjectFill, stored: number): number {
    const counts = countedIn >= this.#readings || isOver;
    const known = counts ? Math.min(counted + acked, stored) : Math.min(acked, this.#acked);
    return known + underWay;
  }

  #setOver(fill: ProjectFill, isOver: boolean): void {
    if (isOver === fill.isOver) return;
    fill.isOver = isOver;
    const change = isOver ? 1 : -1;
    this.#over += change;
    this.#options.onOver(change);
  }

  async #readWhole(manager: JetStreamManager): Promise<void> {
    const { isMixed, projectsKnown } = this.#options;
    const acked = this.#acked;
    const { state, config } = await manager.streams.info(this.#name);
    this.#bytes = state.bytes;
    this.#bytesMax = bytesMaxOf(config);
    // Where messages hold events of several projects, the subjects do not tell how many there are.
    this.#projects = isMixed ? projectsKnown() : (state.num_subjects ?? this.#fills.size);
    this.#acked -= acked;
    this.#askAt = this.#bytesMax * askPart;
    this.#forgetGone();
  }

  /**
   * Forgets bytes that must have left the stream. This process adds up what comes, but the stream
   * does not tell project by project what has left.
   */
  #forgetGone(): void {
    const isQuiet = this.#bytes <= this.#bytesMax * this.#quietPart;
    const isLong = this.#ackedLately > 2 * this.#bytes;
    if (isLong) this.#ackedLately /= 2;
    for (const fill of this.#fills.values()) {
      if (isLong) fill.ackedLately /= 2;
      if (!isQuiet) continue;
      fill.counted = 0;
      fill.acked = Math.min(fill.acked, this.#acked);
    }
  }

  async #countIn(manager: JetStreamManager, whom: "all" | "over"): Promise<void> {
    const reading = this.#readings + (whom === "all" ? 1 : 0);
    try {
      // A project over its share adds nothing, so the mean size of its messages stays about the
      // same and is not read anew.
      for (const fill of this.#overFills())
        await this.#count(manager, fill, { reading, isFresh: false });
      if (whom === "over") return;
      for (const fill of this.#adderFills())
        await this.#count(manager, fill, { reading, isFresh: true });
    } finally {
      this.#readings = reading;
    }
  }

  /** The projects over their share, those whose last count is the oldest first. */
  #overFills(): ProjectFill[] {
    if (this.#over === 0) return [];
    const fills = [...this.#fills.values()].filter((fill) => fill.isOver);
    return fills.sort((left, right) => left.countedAfter - right.countedAfter).slice(0, countedMax);
  }

  /** The projects within their share that have added something, those with the most bytes first. */
  #adderFills(): ProjectFill[] {
    const fills = [...this.#fills.values()].filter(
      ({ isOver, acked, underWay }) => !isOver && acked + underWay > 0,
    );
    const rank = (left: ProjectFill, right: ProjectFill) =>
      right.counted + right.acked - left.counted - left.acked;
    return fills.sort(rank).slice(0, countedMax);
  }

  async #count(
    manager: JetStreamManager,
    fill: ProjectFill,
    { reading, isFresh }: { reading: number; isFresh: boolean },
  ): Promise<void> {
    const { acked } = fill;
    const { subjectPrefix, lane, partition, isMixed } = this.#options;
    const bytesOf = (projectId: string): Promise<number> => {
      const subject = subjectOf(subjectPrefix, lane, { partition, projectId });
      return this.#subjectBytes.ask(manager, subject, isFresh);
    };
    let bytes = await bytesOf(fill.projectId);
    if (isMixed && this.#ackedLately > 0) {
      // A message of several projects does not tell how much of it is whose. The project's part of
      // what this process has stored lately stands for its part of them.
      bytes += ((await bytesOf(manyProjects)) * fill.ackedLately) / this.#ackedLately;
    }
    fill.counted = bytes;
    fill.countedIn = reading;
    fill.countedAfter = this.#counts++;
    fill.acked -= acked;
  }
}
