// Stores how many bytes each project has in one stream, as counted by the gateways. The bytes are
// divided into slices, and each slice has its highest sequence. So the first sequence of the stream
// shows which slices have been removed.

import type { StreamReading, StreamState } from "../../platform/nats/readiness.ts";

/** Pairs of a highest sequence and a number of bytes, with the oldest pair first. */
export type Slices = number[];

const parts = [
  /** Counts that are in the record, which all gateways share. */
  "shared",
  /** Counts that are being written to the record. */
  "sending",
  /** Counts of this process that are not in any record yet. */
  "own",
] as const;
type Part = (typeof parts)[number];

export class Holding {
  readonly projectId: string;
  readonly slices: Record<Part, Slices> = { shared: [], sending: [], own: [] };
  stored = 0;
  underWay = 0;
  heldBefore = 0;
  division = 0;

  constructor(projectId: string) {
    this.projectId = projectId;
  }
}

const reservePart = 1 / 10;
const dividedAgainPart = 1 / 128;
/** Slices must be small, because all bytes of a slice count until its last message is removed. */
const slicePart = 1 / 1_024;
/** Smaller counts are not written, because this limits the size of the record. */
const sharedPart = 1 / 4_096;

export class StreamLedger {
  readonly state: StreamState;
  readonly holdings = new Map<string, Holding>();
  readonly #purged = new Map<string, number>();
  #reading: StreamReading | undefined;
  #stored = 0;
  #unread: Slices = [];
  #unreadBytes = 0;
  #underWay = 0;
  /** The size of the stream at the last division of its reserve. It is Infinity without one. */
  #dividedAt = Number.POSITIVE_INFINITY;
  #division = 0;

  constructor(state: StreamState) {
    this.state = state;
  }

  get bytesMax(): number {
    return this.#reading?.bytesMax ?? Number.POSITIVE_INFINITY;
  }

  get excess(): number {
    return this.#stored - (this.#reading?.bytes ?? 0) - this.#unreadBytes;
  }

  addUnderWay(projectId: string, bytes: number): void {
    this.#holdingOf(projectId).underWay += bytes;
    this.#underWay += bytes;
    this.#divide();
  }

  add(projectId: string, bytes: number): void {
    const holding = this.#holdingOf(projectId);
    const { sequence } = this.state;
    const sliceBytes = this.bytesMax * slicePart;
    append(holding.slices.own, sequence, bytes, sliceBytes);
    append(this.#unread, sequence, bytes, sliceBytes);
    this.#change(holding, bytes);
    this.#unreadBytes += bytes;
    this.#divide();
  }

  load(record: ReadonlyMap<string, Slices>): void {
    for (const projectId of record.keys()) this.#holdingOf(projectId);
    for (const holding of this.holdings.values()) {
      this.#set(holding, "shared", record.get(holding.projectId) ?? []);
      const purged = this.#purged.get(holding.projectId) ?? 0;
      this.#forget(holding, Math.max(purged + 1, this.#reading?.firstSequence ?? 0), ["shared"]);
    }
    this.#dropEmpty();
  }

  /**
   * Returns the counts to write, or undefined if this process has counted too little. Call `sent`
   * before the next call of `send`.
   */
  send(isMissing: boolean): (readonly [projectId: string, slices: Slices])[] | undefined {
    const all = [...this.holdings.values()];
    const due = all.filter(({ slices }) => sumOf(slices.own) >= this.bytesMax * sharedPart);
    for (const { slices } of due) [slices.sending, slices.own] = [slices.own, []];
    if (due.length === 0 && this.#purged.size === 0 && !isMissing) return undefined;
    const record = all.map((holding) => [holding.projectId, this.#joined(holding)] as const);
    const found = record.filter(([, slices]) => slices.length > 0);
    return isMissing && found.length === 0 ? undefined : found;
  }

  sent(isWritten: boolean): void {
    if (isWritten) this.#purged.clear();
    for (const holding of this.holdings.values()) {
      const { slices } = holding;
      if (isWritten) slices.shared = this.#joined(holding);
      else slices.own = [...slices.sending, ...slices.own];
      slices.sending = [];
    }
  }

  read(): boolean {
    const { reading } = this.state;
    if (reading === undefined || reading === this.#reading) return false;
    const before = this.#reading;
    const isNew = reading.created !== before?.created;
    const isOther = isNew && before !== undefined;
    this.#reading = reading;
    const isCutBack = reading.lastSequence < (before?.lastSequence ?? 0);
    this.#dropRead(isOther || isCutBack ? Number.POSITIVE_INFINITY : reading.lastSequence);
    if (isOther || reading.firstSequence !== before?.firstSequence) {
      const firstSequence = isOther ? Number.POSITIVE_INFINITY : reading.firstSequence;
      for (const holding of this.holdings.values()) this.#forget(holding, firstSequence);
      if (isOther) this.#purged.clear();
      this.#dropEmpty();
    }
    this.#divide();
    return isNew;
  }

  isOver(holding: Holding, share: number): boolean {
    return heldBy(holding) >= (this.bytesMax * share) / 100;
  }

  isOverReserve(holding: Holding | undefined, projects: number): boolean {
    const { bytesMax } = this;
    if (this.#dividedAt > bytesMax || this.#filled >= bytesMax) return false;
    if (holding === undefined || holding.division !== this.#division) return false;
    const part = (bytesMax - this.#dividedAt) / projects;
    return heldBy(holding) >= holding.heldBefore + part;
  }

  forgetPurged(holding: Holding, oldest: number): void {
    const { shared } = holding.slices;
    for (const part of parts) {
      const slices = holding.slices[part];
      while (this.excess > 0 && slices.length > 0 && slices[0]! < oldest) {
        if (slices === shared) this.#purged.set(holding.projectId, slices[0]!);
        this.#forget(holding, slices[0]! + 1, [part]);
      }
    }
    this.#dropEmpty();
  }

  get #filled(): number {
    return (this.#reading?.bytes ?? 0) + this.#unreadBytes + this.#underWay;
  }

  #dropRead(lastSequence: number): void {
    let read = 0;
    while (read < this.#unread.length && this.#unread[read]! <= lastSequence) read += 2;
    this.#unreadBytes -= sumOf(this.#unread.splice(0, read));
  }

  #divide(): void {
    const { bytesMax } = this;
    const filled = this.#filled;
    if (filled < bytesMax * (1 - reservePart)) this.#dividedAt = Number.POSITIVE_INFINITY;
    else if (filled < this.#dividedAt - bytesMax * dividedAgainPart) {
      this.#dividedAt = filled;
      this.#division++;
    }
  }

  #holdingOf(projectId: string): Holding {
    let holding = this.holdings.get(projectId);
    if (holding === undefined) {
      holding = new Holding(projectId);
      this.holdings.set(projectId, holding);
    }
    if (holding.division !== this.#division) {
      holding.division = this.#division;
      holding.heldBefore = heldBy(holding);
    }
    return holding;
  }

  #joined({ slices: { shared, sending } }: Holding): Slices {
    const joined = [...shared];
    for (let at = 0; at < sending.length; at += 2)
      append(joined, sending[at]!, sending[at + 1]!, this.bytesMax * slicePart);
    return joined;
  }

  #set(holding: Holding, part: Part, slices: Slices): void {
    this.#change(holding, sumOf(slices) - sumOf(holding.slices[part]));
    holding.slices[part] = slices;
  }

  #forget(holding: Holding, firstSequence: number, of: readonly Part[] = parts): void {
    for (const part of of) {
      const slices = holding.slices[part];
      let left = 0;
      while (left < slices.length && slices[left]! < firstSequence) left += 2;
      if (left > 0) this.#change(holding, -sumOf(slices.splice(0, left)));
    }
  }

  #dropEmpty(): void {
    for (const [projectId, { slices, underWay }] of this.holdings)
      if (underWay === 0 && parts.every((part) => slices[part].length === 0))
        this.holdings.delete(projectId);
  }

  #change(holding: Holding, bytes: number): void {
    holding.stored += bytes;
    this.#stored += bytes;
  }
}

function heldBy({ stored, underWay }: Holding): number {
  return stored + underWay;
}

function append(slices: Slices, sequence: number, bytes: number, sliceBytes: number): void {
  const last = slices.length - 1;
  const sequenceBefore = last < 0 ? 0 : slices[last - 1]!;
  if (last < 0 || slices[last]! >= sliceBytes) {
    slices.push(Math.max(sequenceBefore, sequence), bytes);
    return;
  }
  if (sequence > sequenceBefore) slices[last - 1] = sequence;
  slices[last]! += bytes;
}

function sumOf(slices: Slices): number {
  let sum = 0;
  for (let at = 1; at < slices.length; at += 2) sum += slices[at]!;
  return sum;
}
