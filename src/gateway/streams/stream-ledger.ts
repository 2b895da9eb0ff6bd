// The bytes that each project has in one stream, as counted by the gateways when they stored them.
// They are counted in slices, each with its highest sequence, so the stream's first sequence shows
// which slices have left it, by age, by a purge or with the stream itself. No clock is involved.

import type { StreamReading, StreamState } from "../../platform/nats/readiness.ts";

/** Pairs of numbers, the oldest pair first: the highest sequence of a slice, and its bytes. */
export type Slices = number[];

/**
 * `shared`: in the record that all gateways have. `sending`: in a record that this process is
 * writing. `own`: counted by this process and in no record yet.
 */
const parts = ["shared", "sending", "own"] as const;
type Part = (typeof parts)[number];

/** The bytes of one project in the stream. */
export class Holding {
  readonly projectId: string;
  readonly slices: Record<Part, Slices> = { shared: [], sending: [], own: [] };
  /** Bytes in all slices. */
  stored = 0;
  /** Bytes given to the publisher that have no outcome yet. */
  underWay = 0;
  /** The project's bytes when it first added some since the reserve was divided. */
  heldBefore = 0;
  division = 0;

  constructor(projectId: string) {
    this.projectId = projectId;
  }
}

/** The part of a stream, at its end, that is divided equally. */
const reservePart = 1 / 10;
/** The reserve is divided again when this part of the stream has become free. */
const dividedAgainPart = 1 / 128;
/** A slice ends with this part of the stream's bytes. One that has left in part counts in full. */
const slicePart = 1 / 1_024;
/** Minimum part of a stream for a project to be in the record. It limits the record's size. */
const sharedPart = 1 / 4_096;

export class StreamLedger {
  readonly state: StreamState;
  readonly holdings = new Map<string, Holding>();
  /** Slices in the record that were found to be purged: by project, up to this sequence. */
  readonly #purged = new Map<string, number>();
  #reading: StreamReading | undefined;
  #stored = 0;
  /**
   * The slices that this process has stored after the last sequence of the reading, and their
   * bytes.
   */
  #unread: Slices = [];
  #unreadBytes = 0;
  #underWay = 0;
  /** How full the stream was when the reserve was divided; Infinity while it is not in use. */
  #dividedAt = Number.POSITIVE_INFINITY;
  #division = 0;

  constructor(state: StreamState) {
    this.state = state;
  }

  get bytesMax(): number {
    return this.#reading?.bytesMax ?? Number.POSITIVE_INFINITY;
  }

  /** How many bytes are counted that the stream does not hold; below 0: not all are counted. */
  get excess(): number {
    return this.#stored - (this.#reading?.bytes ?? 0) - this.#unreadBytes;
  }

  addUnderWay(projectId: string, bytes: number): void {
    this.#holdingOf(projectId).underWay += bytes;
    this.#underWay += bytes;
    this.#divide();
  }

  /** Counts bytes at approximately the stream's current end. */
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

  /** Replaces the record's counts of all projects. */
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
   * Returns the record including this process's counts; undefined if these are too small. Call
   * `sent` before the next call. `isMissing`: there is no record.
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

  /** Ends a `send`. Counts that were not written are sent again. */
  sent(isWritten: boolean): void {
    if (isWritten) this.#purged.clear();
    for (const holding of this.holdings.values()) {
      const { slices } = holding;
      if (isWritten) slices.shared = this.#joined(holding);
      else slices.own = [...slices.sending, ...slices.own];
      slices.sending = [];
    }
  }

  /**
   * Takes the last answer of the stream's leader. Returns whether it is the first one of this
   * stream, for which there are no counts yet.
   */
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

  /** Whether the project has used up this share, in per cent. */
  isOver(holding: Holding, share: number): boolean {
    return heldBy(holding) >= (this.bytesMax * share) / 100;
  }

  /** Whether the reserve is in use, and the project has used its part of it. */
  isOverReserve(holding: Holding | undefined, projects: number): boolean {
    const { bytesMax } = this;
    // JetStream refuses messages that do not fit a full stream: then no project has room.
    if (this.#dividedAt > bytesMax || this.#filled >= bytesMax) return false;
    if (holding === undefined || holding.division !== this.#division) return false;
    const part = (bytesMax - this.#dividedAt) / projects;
    return heldBy(holding) >= holding.heldBefore + part;
  }

  /**
   * Removes the project's counts before its oldest message, while more is counted than the stream
   * holds, because those messages were purged.
   */
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

  /** An answer may be older than the data stored since the request. */
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
