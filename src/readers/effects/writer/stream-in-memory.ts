// The state of one stream in memory, which may be ahead of the store: its position, the most recent
// message ids, and duplicate detection.

import type { StoredFrame } from "../../stream/frame.ts";
import type { StreamPosition } from "../../stream/resume.ts";
import type { StreamName } from "../../stream/stored-stream.ts";
import { type TrailEntry, trailLength, trailWith } from "../../stream/trail.ts";
import { Duplicates } from "../duplicates/duplicates.ts";
import type { DuplicatesBudget } from "../duplicates/duplicates-budget.ts";
import type { StoredLine } from "../lines/line.ts";
import type { IncidentRow, Position } from "../types.ts";

export class StreamInMemory {
  readonly name: StreamName;
  /** Usage and spikes have counted the frames up to here, in a previous epoch. */
  readonly countedTo: number;
  readonly #duplicates: Duplicates;
  #epoch: number;
  #created: string;
  #sequence: number;
  #trail: TrailEntry[];
  #isRemembering: boolean;
  #duplicatesFrom: Position["duplicatesFrom"];
  /** The last returned position, and the last one that is certainly stored. */
  #inFlight: Position | undefined;
  #committed: Position | undefined;
  /** Replaces the position of duplicate detection if the stream was replaced. */
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

  /** The newest time of a record so far, limited by the storage time of its frame. */
  get watermarkMs(): number {
    return this.#duplicates.watermarkMs;
  }

  /** How far back a duplicate would be found. */
  get coveredMs(): number {
    return this.#duplicates.coveredMs;
  }

  /** Duplicate detection has all frames up to the position; none need be read again. */
  get isWhole(): boolean {
    return !this.#isRemembering;
  }

  /** For a line of a frame that was applied in an earlier run of the process. */
  remember(line: StoredLine): void {
    this.#duplicates.remember(line);
  }

  /** Call it before the first line of each new frame. */
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
   * Reading continues at another position. Returns whether the sequences have a new meaning: then
   * this object must not be used once its position is committed.
   */
  moveTo({ epoch, created, sequence, trail }: StreamPosition): boolean {
    const isAnother = this.#created !== "" && epoch !== this.#epoch;
    const [previous, current] = this.#duplicatesFrom;
    this.#epoch = epoch;
    this.#created = created;
    this.#sequence = sequence;
    this.#trail = [...trail];
    const from = sequence + 1;
    if (isAnother)
      this.#replaced = {
        ...this.#storedPosition(),
        watermarkMs: this.#duplicates.watermarkMs,
        duplicatesFrom: [Math.min(previous, from), Math.min(current, from)],
      };
    return isAnother;
  }

  /** The position for the transaction of all frames so far. */
  position(): Position {
    if (this.#replaced !== undefined) return this.#replaced;
    const changes = this.#duplicates.changes();
    this.#duplicatesFrom = changes.duplicatesFrom;
    this.#inFlight = { ...this.#storedPosition(), ...changes };
    return this.#inFlight;
  }

  committed(): void {
    this.#duplicates.committed();
    if (this.#replaced === undefined) this.#committed = this.#inFlight;
  }

  /**
   * Drops everything uncommitted. False: the object was not whole, or the store has another
   * position than this object expects; then it must not be used.
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

  /** The object must not be used afterwards. */
  close(): void {
    this.#duplicates.close();
  }

  #storedPosition(): Omit<Position, "duplicatesFrom" | "watermarkMs"> {
    return {
      ...this.name,
      epoch: this.#epoch,
      created: this.#created,
      sequence: this.#sequence,
      trail: this.#trail.slice(-trailLength),
    };
  }
}

/** If an older copy is read again on request, its messages up to here are counted already. */
export function countedBefore(
  { stream, epoch }: Position,
  incidents: readonly IncidentRow[],
): number {
  const isThis = (one: IncidentRow): boolean =>
    one.kind === "copy_accepted" && one.stream === stream && one.epoch === epoch;
  return Math.max(0, ...incidents.filter(isThis).map(({ sequence }) => sequence));
}
