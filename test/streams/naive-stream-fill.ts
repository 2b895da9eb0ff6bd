// The shares of a stream decided in the plain way: every step walks and sorts all projects. The
// decisions of StreamFill are compared with these.

import type { JetStreamManager } from "@nats-io/jetstream";
import { bytesMaxOf, managerOf } from "../../src/nats/api.ts";
import { manyProjects, streamName, subjectOf } from "../../src/nats/names.ts";
import { mayHaveBytes } from "../../src/streams/share-rule.ts";
import type { StreamFillOptions } from "../../src/streams/stream-fill.ts";
import { SubjectBytes } from "../../src/streams/subject-bytes.ts";

interface NaiveProjectFill {
  readonly projectId: string;
  counted: number;
  countedIn: number;
  countedAfter: number;
  acked: number;
  ackedSinceAsked: number;
  underWay: number;
  ackedLately: number;
  isOver: boolean;
}

const askTimeoutMs = 2_000;
const quietPartMax = 1 / 4;
const askPart = 1 / 64;
const judgePart = 1 / 512;
const countedMax = 8;

export class NaiveStreamFill {
  readonly #options: StreamFillOptions;
  readonly #name: string;
  readonly #quietPart: number;
  readonly #subjectBytes: SubjectBytes;
  readonly #fills = new Map<string, NaiveProjectFill>();
  #sinceAllMs = 0;
  readonly #over = new Set<NaiveProjectFill>();
  #projects = 0;
  #bytes = 0;
  #bytesMax = 0;
  #readings = 0;
  #counts = 0;
  #acked = 0;
  #underWay = 0;
  #ackedLately = 0;
  #judgeAt = 0;
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

  fillOf(projectId: string): NaiveProjectFill {
    const known = this.#fills.get(projectId);
    if (known !== undefined) return known;
    const counts = { counted: 0, countedIn: 0, countedAfter: 0, acked: 0, ackedSinceAsked: 0 };
    const fill = { projectId, ...counts, underWay: 0, ackedLately: 0, isOver: false };
    this.#fills.set(projectId, fill);
    return fill;
  }

  addUnderWay(fill: NaiveProjectFill, bytes: number): void {
    fill.underWay += bytes;
    this.#underWay += bytes;
    if (bytes > 0) this.#judgeIfDue();
  }

  addStored(fill: NaiveProjectFill, bytes: number): void {
    fill.acked += bytes;
    fill.ackedSinceAsked += bytes;
    fill.ackedLately += bytes;
    this.#acked += bytes;
    this.#ackedLately += bytes;
    this.#judgeIfDue();
    if (this.#acked >= this.#askAt) void this.#ask("all");
  }

  tick(passedMs: number, everyMs: number): void {
    this.#sinceAllMs += passedMs;
    if (this.#fills.size === 0) return;
    if (this.#sinceAllMs >= everyMs) void this.#ask("all");
    else if (this.#over.size > 0) void this.#ask("over");
  }

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

  #bytesOf(
    { counted, countedIn, acked, underWay, isOver }: NaiveProjectFill,
    stored: number,
  ): number {
    const counts = countedIn >= this.#readings || isOver;
    const known = counts ? Math.min(counted + acked, stored) : Math.min(acked, this.#acked);
    return known + underWay;
  }

  #setOver(fill: NaiveProjectFill, isOver: boolean): void {
    if (isOver === fill.isOver) return;
    fill.isOver = isOver;
    if (isOver) this.#over.add(fill);
    else this.#over.delete(fill);
    this.#options.onOver(isOver ? 1 : -1);
  }

  async #readWhole(manager: JetStreamManager): Promise<void> {
    const { isMixed, projectsKnown } = this.#options;
    const acked = this.#acked;
    for (const fill of this.#fills.values()) fill.ackedSinceAsked = 0;
    const { state, config } = await manager.streams.info(this.#name);
    this.#bytes = state.bytes;
    this.#bytesMax = bytesMaxOf(config);
    this.#projects = isMixed ? projectsKnown() : (state.num_subjects ?? this.#fills.size);
    this.#acked -= acked;
    this.#askAt = this.#bytesMax * askPart;
    this.#forgetGone();
  }

  #forgetGone(): void {
    const isQuiet = this.#bytes <= this.#bytesMax * this.#quietPart;
    const isLong = this.#ackedLately > 2 * this.#bytes;
    if (isLong) this.#ackedLately /= 2;
    for (const fill of this.#fills.values()) {
      if (isLong) fill.ackedLately /= 2;
      if (!isQuiet) continue;
      fill.counted = 0;
      fill.acked = fill.ackedSinceAsked;
    }
  }

  async #countIn(manager: JetStreamManager, whom: "all" | "over"): Promise<void> {
    const reading = this.#readings + (whom === "all" ? 1 : 0);
    try {
      for (const fill of this.#overFills())
        await this.#count(manager, fill, { reading, isFresh: false });
      if (whom === "over") return;
      for (const fill of this.#adderFills())
        await this.#count(manager, fill, { reading, isFresh: true });
    } finally {
      this.#readings = reading;
    }
  }

  #overFills(): NaiveProjectFill[] {
    const fills = [...this.#over];
    return fills
      .sort((left, right) => left.countedAfter - right.countedAfter || byId(left, right))
      .slice(0, countedMax);
  }

  #adderFills(): NaiveProjectFill[] {
    const fills = [...this.#fills.values()].filter(
      ({ isOver, acked, underWay }) => !isOver && acked + underWay > 0,
    );
    const rank = (left: NaiveProjectFill, right: NaiveProjectFill) =>
      right.counted + right.acked - left.counted - left.acked || byId(left, right);
    return fills.sort(rank).slice(0, countedMax);
  }

  async #count(
    manager: JetStreamManager,
    fill: NaiveProjectFill,
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
      bytes += ((await bytesOf(manyProjects)) * fill.ackedLately) / this.#ackedLately;
    }
    fill.counted = bytes;
    fill.countedIn = reading;
    fill.countedAfter = this.#counts++;
    fill.acked -= acked;
  }
}

function byId(left: NaiveProjectFill, right: NaiveProjectFill): number {
  return left.projectId < right.projectId ? -1 : 1;
}
