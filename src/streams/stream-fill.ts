// What each project has in one stream, as far as it matters, and who of them is over the share. The
// stream is asked now and then, and for the few that matter; between two questions what this
// process was acknowledged, and what it has under way, is added.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Lane } from "../base/types.ts";
import { bytesMaxOf, managerOf } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import { manyProjects, streamName, subjectOf } from "../nats/names.ts";
import { mayHaveBytes } from "./share-rule.ts";
import { SubjectBytes } from "./subject-bytes.ts";

export interface StreamFillOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly subjectPrefix: string;
  readonly lane: Lane;
  readonly partition: number;
  /** Whether messages hold events of several projects. */
  readonly isMixed: boolean;
  /** Per cent of the stream that one project can fill beside others that have little. */
  readonly projectShare: number;
  /** In all. Beside one there is nobody to keep room for. */
  readonly projectsKnown: () => number;
  /** One project more is over its share, or one fewer. */
  readonly onOver: (change: 1 | -1) => void;
}

/** What this process knows of one project in the stream, in bytes but for the counts. */
export interface ProjectFill {
  readonly projectId: string;
  /** What there was at the last count, and the reading that it was part of; 0 before the first. */
  counted: number;
  countedIn: number;
  /** Counts of the stream's projects that had been made before. */
  countedAfter: number;
  /** Acknowledged to this process since then. */
  acked: number;
  /** Given to the publisher, and neither acknowledged nor refused. */
  underWay: number;
  /** Its part of the stream's `ackedLately`. */
  ackedLately: number;
  isOver: boolean;
}

const askTimeoutMs = 2_000;
/** Up to this part of a stream nobody is near a share, unless the share is as small. */
const quietPartMax = 1 / 4;
/** After this part of a stream it is asked again, without waiting for the timer. */
const askPart = 1 / 64;
const judgePart = 1 / 512;
/** Projects that are counted in a reading of those that are over, and of the others as many. */
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
  /** Projects that have something in it, as far as it tells. */
  #projects = 0;
  #bytes = 0;
  /** 0 until it is known; Infinity without a limit. */
  #bytesMax = 0;
  /** Readings that have come to their end; those of whoever is over do not count. */
  #readings = 0;
  #counts = 0;
  /** Bytes acknowledged to this process since the stream was asked. */
  #acked = 0;
  #underWay = 0;
  /**
   * Acknowledged to this process while about as much came as the stream holds: whose part of shared
   * messages is how large.
   */
  #ackedLately = 0;
  /** What has been added, and is under way, when the shares are judged again. */
  #judgeAt = 0;
  /** What has been added when the stream is asked again before its time. */
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

  /** The project's own, made when there is none. */
  fillOf(projectId: string): ProjectFill {
    const known = this.#fills.get(projectId);
    if (known !== undefined) return known;
    const counts = { counted: 0, countedIn: 0, countedAfter: 0, acked: 0, underWay: 0 };
    const fill = { projectId, ...counts, ackedLately: 0, isOver: false };
    this.#fills.set(projectId, fill);
    return fill;
  }

  /** Bytes of the project are under way to the stream; less than 0: so many are not any more. */
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

  /** So much time has passed: asks in which a project has stored something, if it is due. */
  tick(passedMs: number, everyMs: number): void {
    this.#sinceAllMs += passedMs;
    if (this.#fills.size === 0) return;
    if (this.#sinceAllMs >= everyMs) void this.#ask("all");
    else if (this.#over > 0) void this.#ask("over");
  }

  /** Unless it is being asked; never rejects. */
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
      // What is known stays; that JetStream does not answer is said elsewhere. Without a limit
      // known, the next try is the clock's.
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

  /** Says anew who is over, from what was counted in the last reading and what has come since. */
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
   * Much of what an older count found may have left the stream since: it makes nobody be over,
   * though who is stays so by it.
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
    // Beside messages of several projects the subjects do not tell how many there are.
    this.#projects = isMixed ? projectsKnown() : (state.num_subjects ?? this.#fills.size);
    this.#acked -= acked;
    this.#askAt = this.#bytesMax * askPart;
    this.#forgetGone();
  }

  /**
   * Forgets what the stream has told to be no more: what was added adds up, but what has left is
   * not told project by project.
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
      // Nothing is added by those that are over: the mean of their messages stays about what it
      // was.
      for (const fill of this.#overFills())
        await this.#count(manager, fill, { reading, isFresh: false });
      if (whom === "over") return;
      for (const fill of this.#adderFills())
        await this.#count(manager, fill, { reading, isFresh: true });
    } finally {
      this.#readings = reading;
    }
  }

  /** Those that are over, the longest uncounted first. */
  #overFills(): ProjectFill[] {
    if (this.#over === 0) return [];
    const fills = [...this.#fills.values()].filter((fill) => fill.isOver);
    return fills.sort((left, right) => left.countedAfter - right.countedAfter).slice(0, countedMax);
  }

  /** Those of the others that have or added most. */
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
      // Whose part of messages of several projects is how large, what this process has stored says.
      bytes += ((await bytesOf(manyProjects)) * fill.ackedLately) / this.#ackedLately;
    }
    fill.counted = bytes;
    fill.countedIn = reading;
    fill.countedAfter = this.#counts++;
    fill.acked -= acked;
  }
}
