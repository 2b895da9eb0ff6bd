// How far one stream is applied in memory, which may be ahead of the store: place, the newest
// message ids, and the memory of duplicates. What is told to the store is a position.

import type { StoredFrame } from "../../stream/frame.ts";
import type { Place } from "../../stream/resume.ts";
import type { StreamName } from "../../stream/stored-stream.ts";
import { type TrailEntry, trailLength, trailWith } from "../../stream/trail.ts";
import { Duplicates } from "../duplicates/duplicates.ts";
import type { DuplicatesBudget } from "../duplicates/duplicates-budget.ts";
import type { StoredLine } from "../lines/line.ts";
import type { IncidentRow, Position } from "../types.ts";

export class StreamInMemory {
  readonly name: StreamName;
  /** Usage and spikes have counted the frames up to here, under an epoch before. */
  readonly countedTo: number;
  readonly #duplicates: Duplicates;
  #epoch: number;
  #created: string;
  #sequence: number;
  #trail: TrailEntry[];
  #isRemembering: boolean;
  #duplicatesFrom: Position["duplicatesFrom"];
  /** What was given out last, and what the store has of that for certain. */
  #inFlight: Position | undefined;
  #committed: Position | undefined;
  /** Takes the place of what the memory of duplicates says, where the stream became another one. */
  #replaced: Position | undefined = undefined;

  constructor(
    name: StreamName,
    budget: DuplicatesBudget,
    { position, countedTo = 0 }: { position?: Position; countedTo?: number } = {},
  ) {
    this.name = name;
    this.countedTo = countedTo;
    this.#duplicates = new Duplicates({ budget, lane: name.lane, position });
    this.#epoch = position?.epoch ?? 1;
    this.#created = position?.created ?? "";
    this.#sequence = position?.sequence ?? 0;
    this.#trail = [...(position?.trail ?? [])];
    this.#isRemembering = position !== undefined;
    this.#committed = position;
    this.#duplicatesFrom = position?.duplicatesFrom ?? [1, 1];
  }

  /** The newest time of a record so far, which is bounded by when the stream stored it. */
  get watermarkMs(): number {
    return this.#duplicates.watermarkMs;
  }

  /** How far back a duplicate would be found. */
  get coveredMs(): number {
    return this.#duplicates.coveredMs;
  }

  /** It knows what it has to of the frames up to its place; none need be read again. */
  get isWhole(): boolean {
    return !this.#isRemembering;
  }

  /** For a line of a frame that was applied in an earlier run of the process. */
  remember(line: StoredLine): void {
    this.#duplicates.remember(line);
  }

  /** Before the first line of each frame that is new. */
  beginFrame(): void {
    if (this.#isRemembering) this.#duplicates.restored();
    this.#isRemembering = false;
  }

  isDuplicate(line: StoredLine): boolean {
    return this.#duplicates.add(line);
  }

  endFrame(frame: StoredFrame): void {
    const { sequence } = frame;
    this.#duplicates.endFrame(sequence);
    this.#sequence = sequence;
    this.#trail = trailWith(this.#trail, frame);
  }

  /**
   * The reading goes on at another place. Returns whether the numbers mean something else now: then
   * this object is of no more use once its position is committed.
   */
  moveTo({ epoch, created, sequence, trail }: Place): boolean {
    const isAnother = this.#created !== "" && epoch !== this.#epoch;
    const [previous, current] = this.#duplicatesFrom;
    this.#epoch = epoch;
    this.#created = created;
    this.#sequence = sequence;
    this.#trail = [...trail];
    const from = sequence + 1;
    if (isAnother)
      this.#replaced = {
        ...this.#place(),
        watermarkMs: this.#duplicates.watermarkMs,
        duplicatesFrom: [Math.min(previous, from), Math.min(current, from)],
      };
    return isAnother;
  }

  /** For the transaction of all frames so far. */
  position(): Position {
    if (this.#replaced !== undefined) return this.#replaced;
    const changes = this.#duplicates.changes();
    this.#duplicatesFrom = changes.duplicatesFrom;
    this.#inFlight = { ...this.#place(), ...changes };
    return this.#inFlight;
  }

  committed(): void {
    this.#duplicates.committed();
    if (this.#replaced === undefined) this.#committed = this.#inFlight;
  }

  /**
   * Forgets what is not committed. False: it was not whole, or the store has another position than
   * this object knows to be there; then the object is of no more use.
   */
  returnTo(position: Position): boolean {
    const known = this.#committed;
    if (this.#isRemembering || this.#replaced !== undefined || known === undefined) return false;
    const isSame =
      known.epoch === position.epoch &&
      known.created === position.created &&
      known.sequence === position.sequence;
    if (!isSame) return false;
    this.#duplicates.discard();
    this.#inFlight = undefined;
    this.#epoch = known.epoch;
    this.#created = known.created;
    this.#sequence = known.sequence;
    this.#trail = [...known.trail];
    this.#duplicatesFrom = known.duplicatesFrom;
    return true;
  }

  /** The object is not used after that. */
  close(): void {
    this.#duplicates.close();
  }

  #place(): Omit<Position, "duplicatesFrom" | "watermarkMs"> {
    return {
      ...this.name,
      epoch: this.#epoch,
      created: this.#created,
      sequence: this.#sequence,
      trail: this.#trail.slice(-trailLength),
    };
  }
}

/** Where an older copy is read once more, as told, its messages are counted already up to here. */
export function countedBefore(
  { stream, epoch }: Position,
  incidents: readonly IncidentRow[],
): number {
  const isThis = (one: IncidentRow): boolean =>
    one.kind === "copy_accepted" && one.stream === stream && one.epoch === epoch;
  return Math.max(0, ...incidents.filter(isThis).map(({ sequence }) => sequence));
}
