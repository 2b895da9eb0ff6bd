// Knows what each project has in one stream, as far as that matters, and which projects are over
// their share. The stream is asked now and then, and only for the few projects that matter. Between
// two questions, the bytes that were acknowledged to this process, and those it has under way, are
// added. No step walks all projects: there may be hundreds of thousands.

import type { JetStreamManager } from "@nats-io/jetstream";
import { Rounds } from "../base/rounds.ts";
import type { Lane } from "../base/types.ts";
import { bytesMaxOf, managerOf } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import { manyProjects, streamName, subjectOf } from "../nats/names.ts";
import { FillRanking } from "./fill-ranking.ts";
import {
  byLastCount,
  halvingsUntilGone,
  isSmallPart,
  isUsed,
  newFill,
  type ProjectFill,
} from "./project-fill.ts";
import { mayHaveBytes } from "./share-rule.ts";
import { SubjectBytes } from "./subject-bytes.ts";

export interface StreamFillOptions {
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

const askTimeoutMs = 2_000;
/**
 * While no more than this part of a stream is filled, no project can be near its share, unless the
 * share itself is smaller.
 */
const quietPartMax = 1 / 4;
/** When this part of a stream has been stored since the last question, it is asked at once. */
const askPart = 1 / 64;
const judgePart = 1 / 512;
/** A reading counts at most this many of the projects over their share, and as many others. */
const countedMax = 8;

/** So many projects are known however long ago they added something. */
const idleFillsMax = 4_096;

export class StreamFill {
  readonly #options: StreamFillOptions;
  readonly #name: string;
  readonly #quietPart: number;
  readonly #subjectBytes: SubjectBytes;
  readonly #fills = new Map<string, ProjectFill>();
  readonly #rounds = new Rounds(this.#fills, (fill) => this.#forgetIdle(fill));
  /** The projects over their share. */
  readonly #over = new Set<ProjectFill>();
  /** The projects within their share that have added something since their last count. */
  readonly #adders = new FillRanking<ProjectFill>();
  readonly #withUnderWay = new Set<ProjectFill>();
  /** The projects that the last reading has counted, and those counted since. */
  #countedLately = new Set<ProjectFill>();
  /** Bytes acknowledged to this process since a question began that has no answer yet. */
  #ackedSinceAsked: Map<ProjectFill, number> | undefined;
  #sinceAllMs = 0;
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
   * holds. A project's part of them stands for its part of messages that several projects share.
   */
  #ackedLately = 0;
  #halvings = 0;
  /** How many readings have found so little in the stream that no project matters. */
  #quietReadings = 0;
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

  get projectsKnown(): number {
    return this.#fills.size;
  }

  isOver(projectId: string): boolean {
    return this.#fills.get(projectId)?.isOver === true;
  }

  /** What is known of the project, made when there is nothing yet. */
  fillOf(projectId: string): ProjectFill {
    const known = this.#fills.get(projectId);
    if (known !== undefined) return known;
    const fill = newFill(projectId, this.#halvings, this.#quietReadings);
    this.#fills.set(projectId, fill);
    this.#rounds.step();
    return fill;
  }

  /**
   * Forgets the project if nothing of it matters any more, as it is of one that was deleted. A
   * caller must not use a fill after it has asked for another one.
   */
  #forgetIdle(fill: ProjectFill): void {
    if (this.#fills.size <= idleFillsMax || this.#isAsking) return;
    const halvings = this.#halvings - fill.halvings;
    const hasGone = fill.quietReadings < this.#quietReadings || halvings >= halvingsUntilGone;
    const isPartKept = this.#options.isMixed && !isSmallPart(fill, halvings, this.#ackedLately);
    if (this.#countedLately.has(fill) || isPartKept || isUsed(fill, hasGone)) return;
    this.#fills.delete(fill.projectId);
    this.#adders.delete(fill);
  }

  /** `bytes` more of the project are under way to the stream; below 0: that many are no longer. */
  addUnderWay(fill: ProjectFill, bytes: number): void {
    this.#learn(fill);
    fill.underWay += bytes;
    if (fill.underWay > 0) this.#withUnderWay.add(fill);
    else this.#withUnderWay.delete(fill);
    this.#rank(fill);
    this.#underWay += bytes;
    if (bytes > 0) this.#judgeIfDue();
  }

  addStored(fill: ProjectFill, bytes: number): void {
    this.#learn(fill);
    fill.acked += bytes;
    fill.ackedLately += bytes;
    this.#rank(fill);
    const since = this.#ackedSinceAsked;
    since?.set(fill, (since.get(fill) ?? 0) + bytes);
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
    else if (this.#over.size > 0) void this.#ask("over");
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
      this.#ackedSinceAsked = undefined;
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
    for (const fill of this.#judged(mayHave))
      this.#setOver(fill, isHeld && this.#bytesOf(fill, stored) > mayHave);
  }

  /** All projects that may be over their share where a project may have so many bytes. */
  #judged(mayHave: number): Set<ProjectFill> {
    const fills = [...this.#over, ...this.#countedLately, ...this.#withUnderWay];
    // Any other project is taken to have only what came since the last reading, which is seldom
    // that much, or since the start, where no reading has counted.
    if (this.#readings === 0 || this.#acked > mayHave) fills.push(...this.#adders.above(mayHave));
    return new Set(fills);
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
    if (isOver) this.#over.add(fill);
    else this.#over.delete(fill);
    this.#rank(fill);
    this.#options.onOver(isOver ? 1 : -1);
  }

  #rank(fill: ProjectFill): void {
    const { isOver, acked, underWay } = fill;
    if (!isOver && acked + underWay > 0) this.#adders.put(fill);
    else this.#adders.delete(fill);
  }

  async #readWhole(manager: JetStreamManager): Promise<void> {
    const { isMixed, projectsKnown } = this.#options;
    const acked = this.#acked;
    const since = new Map<ProjectFill, number>();
    this.#ackedSinceAsked = since;
    const { state, config } = await manager.streams.info(this.#name);
    this.#bytes = state.bytes;
    this.#bytesMax = bytesMaxOf(config);
    // Where messages hold events of several projects, the subjects do not tell how many there are.
    this.#projects = isMixed ? projectsKnown() : (state.num_subjects ?? this.#fills.size);
    this.#acked -= acked;
    this.#askAt = this.#bytesMax * askPart;
    this.#forgetGone(since);
  }

  /**
   * Forgets bytes that must have left the stream. This process adds up what comes, but the stream
   * does not tell project by project what has left. `since`: what came after the stream was asked.
   */
  #forgetGone(since: ReadonlyMap<ProjectFill, number>): void {
    if (this.#ackedLately > 2 * this.#bytes) {
      this.#ackedLately /= 2;
      this.#halvings++;
    }
    if (this.#bytes > this.#bytesMax * this.#quietPart) return;
    this.#quietReadings++;
    this.#adders.clear();
    const fills = [...this.#over, ...this.#countedLately, ...this.#withUnderWay];
    for (const fill of [...fills, ...since.keys()]) {
      this.#learn(fill);
      fill.acked = since.get(fill) ?? 0;
      this.#rank(fill);
    }
  }

  /**
   * Has the fill forget what the stream's readings have said since it was used last. Most fills
   * learn that only here, when they are used again.
   */
  #learn(fill: ProjectFill): void {
    if (fill.halvings < this.#halvings) {
      fill.ackedLately /= 2 ** (this.#halvings - fill.halvings);
      fill.halvings = this.#halvings;
    }
    if (fill.quietReadings === this.#quietReadings) return;
    fill.quietReadings = this.#quietReadings;
    fill.counted = 0;
    fill.acked = 0;
  }

  async #countIn(manager: JetStreamManager, whom: "all" | "over"): Promise<void> {
    const reading = this.#readings + (whom === "all" ? 1 : 0);
    try {
      // A project over its share adds nothing, so the mean size of its messages stays about the
      // same and is not read anew.
      for (const fill of this.#overFills())
        await this.#count(manager, fill, { reading, isFresh: false });
      if (whom === "over") return;
      // Those with the most bytes first.
      for (const fill of this.#adders.first(countedMax))
        await this.#count(manager, fill, { reading, isFresh: true });
    } finally {
      this.#readings = reading;
      for (const fill of this.#countedLately)
        if (fill.countedIn < reading) this.#countedLately.delete(fill);
    }
  }

  /** The projects over their share, those whose last count is the oldest first. */
  #overFills(): ProjectFill[] {
    return [...this.#over].sort(byLastCount).slice(0, countedMax);
  }

  async #count(
    manager: JetStreamManager,
    fill: ProjectFill,
    { reading, isFresh }: { reading: number; isFresh: boolean },
  ): Promise<void> {
    this.#learn(fill);
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
    this.#countedLately.add(fill);
    this.#rank(fill);
  }
}
