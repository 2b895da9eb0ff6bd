// The bytes that each project has in one stream, as the gateways counted them when they were
// acknowledged. They are counted in slices, each with the highest sequence in it, so the stream's
// first sequence tells which slices have left it, whether by age, by a purge or with the stream
// itself. No clock decides what counts.

import type { StreamReading, StreamState } from "../nats/readiness.ts";

/** Pairs of numbers, the oldest pair first: the highest sequence of a slice, and its bytes. */
export type Slices = number[];

/** What one project has in the stream. */
export class Holding {
  readonly projectId: string;
  /** By the process that counted them. */
  readonly slices = new Map<string, Slices>();
  /** The sum of all slices. */
  bytes = 0;
  /** Bytes given to the publisher that have no outcome yet. */
  underWay = 0;
  /** Bytes counted by this process that are in no record yet. */
  unwritten = 0;
  /** When this process began its newest slice. */
  sliceMonotonicMs = Number.NEGATIVE_INFINITY;
  /** How many messages the stream lacked when the project's oldest one was looked up. */
  deletedSeen = 0;
  /** What the project had when it first added something since the reserve was divided. */
  heldBefore = 0;
  division = 0;

  constructor(projectId: string) {
    this.projectId = projectId;
  }
}

/** This part of a stream, its end, is divided equally. */
const reservePart = 1 / 10;
/** The reserve is divided again when this part of the stream has become free. */
const dividedAgainPart = 1 / 128;
/**
 * A slice ends after this part of the time for which the stream keeps events, or with this part of
 * its bytes. One that has left in part counts in full.
 */
const slicesOfAge = 64;
const slicesOfBytes = 1_024;
/** Takes the place of a process for what is estimated. */
const estimated = "";

export class StreamLedger {
  readonly state: StreamState;
  readonly holdings = new Map<string, Holding>();
  readonly #processId: string;
  readonly #subjectStart: string;
  #reading: StreamReading | undefined;
  #total = 0;
  /**
   * How much more is counted than the stream has: bytes that were not stored after all, or were
   * deleted one by one. Each project has less by its part of them.
   */
  #excess = 0;
  /** Bytes that this process has stored since the last reading. */
  #since = 0;
  #underWay = 0;
  /** How full the stream was when the reserve was divided; Infinity while it is not in use. */
  #dividedAt = Number.POSITIVE_INFINITY;
  #division = 0;

  /** `subjectStart`: what precedes the project's id in the subjects of its messages. */
  constructor(state: StreamState, subjectStart: string, processId: string) {
    this.state = state;
    this.#subjectStart = subjectStart;
    this.#processId = processId;
  }

  get bytesMax(): number {
    return this.#reading?.bytesMax ?? Number.POSITIVE_INFINITY;
  }

  /** Bytes in the stream that are in no slice. */
  get uncounted(): number {
    return (this.#reading?.bytes ?? 0) + this.#since - this.#total;
  }

  addUnderWay(projectId: string, bytes: number): void {
    this.#holdingOf(projectId).underWay += bytes;
    this.#underWay += bytes;
  }

  /** Counts bytes that were stored at about the stream's present end. */
  add(projectId: string, bytes: number, monotonicMs: number): Holding {
    const holding = this.#holdingOf(projectId);
    const own = holding.slices.get(this.#processId) ?? [];
    const { ageMaxMs = Number.POSITIVE_INFINITY } = this.#reading ?? {};
    const isOld = monotonicMs - holding.sliceMonotonicMs >= ageMaxMs / slicesOfAge;
    if (own.length === 0 || isOld || own.at(-1)! >= this.bytesMax / slicesOfBytes) {
      own.push(0, 0);
      holding.slices.set(this.#processId, own);
      holding.sliceMonotonicMs = monotonicMs;
    }
    own[own.length - 2] = Math.max(own[own.length - 2]!, this.state.sequence);
    own[own.length - 1]! += bytes;
    holding.unwritten += bytes;
    this.#since += bytes;
    this.#change(holding, bytes);
    return holding;
  }

  /** Replaces what another process has counted of a project. */
  set(projectId: string, processId: string, slices: Slices): void {
    const holding = this.#holdingOf(projectId);
    this.#change(holding, sumOf(slices) - sumOf(holding.slices.get(processId) ?? []));
    holding.slices.set(processId, slices);
    this.forget(holding, this.#reading?.firstSequence ?? 0);
  }

  /**
   * Counts the bytes that are in no slice as these projects', by the bytes that each has stored
   * elsewhere, and as spread evenly over the stream.
   */
  estimate(projects: readonly (readonly [projectId: string, bytes: number])[]): void {
    const { firstSequence = 1, lastSequence = 0 } = this.#reading ?? {};
    const { uncounted } = this;
    const sum = projects.reduce((total, [, bytes]) => total + bytes, 0);
    for (const [projectId, bytes] of projects) {
      const sliceBytes = Math.round((uncounted * bytes) / Math.max(1, sum) / slicesOfAge);
      const slices = Array.from({ length: slicesOfAge }, (_, slice) => [
        firstSequence + Math.ceil(((lastSequence - firstSequence) * (slice + 1)) / slicesOfAge),
        sliceBytes,
      ]);
      this.set(projectId, estimated, slices.flat());
    }
  }

  /**
   * Takes the last answer of the stream's leader. Returns whether it is the first one of this
   * stream, of which nothing is known yet.
   */
  read(): boolean {
    const { reading } = this.state;
    if (reading === undefined || reading === this.#reading) return false;
    const before = this.#reading;
    const isNew = reading.created !== before?.created;
    const isOther = isNew && before !== undefined;
    this.#reading = reading;
    this.#since = 0;
    if (isOther || reading.firstSequence !== before?.firstSequence) {
      const firstSequence = isOther ? Number.POSITIVE_INFINITY : reading.firstSequence;
      for (const holding of this.holdings.values()) this.forget(holding, firstSequence);
    }
    this.#excess = Math.max(0, this.#total - reading.bytes);
    return isNew;
  }

  /** Whether the project has as many bytes as it may have by this share, in per cent. */
  isOver({ bytes, underWay }: Holding, share: number): boolean {
    const held = bytes - (this.#excess * bytes) / Math.max(1, this.#total);
    return held + underWay >= (this.bytesMax * share) / 100;
  }

  /** Whether the reserve is in use, and the project has used its part of it. */
  isOverReserve(holding: Holding | undefined, projects: number): boolean {
    const { bytesMax } = this;
    const filled = (this.#reading?.bytes ?? 0) + this.#since + this.#underWay;
    if (filled < bytesMax * (1 - reservePart)) this.#dividedAt = Number.POSITIVE_INFINITY;
    else if (filled < this.#dividedAt - bytesMax * dividedAgainPart) {
      this.#dividedAt = filled;
      this.#division++;
    }
    // JetStream refuses what a full stream has no room for: then no project has room.
    if (this.#dividedAt > bytesMax || filled >= bytesMax || holding === undefined) return false;
    this.#noteDivision(holding);
    const part = (bytesMax - this.#dividedAt) / projects;
    return holding.bytes + holding.underWay >= holding.heldBefore + part;
  }

  /** Forgets what the project had before this sequence, and the project if it has nothing. */
  forget(holding: Holding, firstSequence: number): void {
    for (const [processId, slices] of holding.slices) {
      let gone = 0;
      while (gone < slices.length && slices[gone]! < firstSequence) gone += 2;
      if (gone > 0) this.#change(holding, -sumOf(slices.splice(0, gone)));
      if (slices.length === 0) holding.slices.delete(processId);
    }
    const isEmpty = holding.slices.size === 0 && holding.underWay === 0;
    if (isEmpty) this.holdings.delete(holding.projectId);
  }

  subjectOf(projectId: string): string {
    return this.#subjectStart + projectId;
  }

  #holdingOf(projectId: string): Holding {
    let holding = this.holdings.get(projectId);
    if (holding === undefined) {
      holding = new Holding(projectId);
      this.holdings.set(projectId, holding);
    }
    this.#noteDivision(holding);
    return holding;
  }

  #noteDivision(holding: Holding): void {
    if (holding.division === this.#division) return;
    holding.division = this.#division;
    holding.heldBefore = holding.bytes + holding.underWay;
  }

  #change(holding: Holding, bytes: number): void {
    holding.bytes += bytes;
    this.#total += bytes;
    if (bytes < 0) this.#excess = Math.max(0, this.#excess + bytes);
  }
}

function sumOf(slices: Slices): number {
  let sum = 0;
  for (let at = 1; at < slices.length; at += 2) sum += slices[at]!;
  return sum;
}
