// The state of one stream in memory. It may be ahead of the store.

import type { StoredFrame } from "../../stream/frame.ts";
import {
  type StreamPosition,
  type TrailEntry,
  trailLength,
  trailWith,
} from "../../stream/resume.ts";
import type { StreamName } from "../../stream/stored-stream.ts";
import { Duplicates, type DuplicatesBudget } from "../duplicates/duplicates.ts";
import type { IncidentRow, Position } from "../types.ts";

export class StreamInMemory {
  readonly name: StreamName;
  readonly countedTo: number;
  readonly duplicates: Duplicates;
  #epoch: number;
  #created: string;
  #sequence: number;
  #trail: TrailEntry[];
  #isRemembering: boolean;
  #duplicatesFrom: Position["duplicatesFrom"];
  #inFlight: Position | undefined;
  #committed: Position | undefined;
  #replaced: Position | undefined = undefined;

  constructor(
    name: StreamName,
    budget: DuplicatesBudget,
    { position, countedTo = 0 }: { position?: Position; countedTo?: number } = {},
  ) {
    this.name = name;
    this.countedTo = countedTo;
    this.duplicates = new Duplicates({ budget, lane: name.lane, position });
    this.#epoch = position?.epoch ?? 1;
    this.#created = position?.created ?? "";
    this.#sequence = position?.sequence ?? 0;
    this.#trail = [...(position?.trail ?? [])];
    this.#isRemembering = position !== undefined;
    this.#committed = position;
    this.#duplicatesFrom = position?.duplicatesFrom ?? [1, 1];
  }

  get isWhole(): boolean {
    return !this.#isRemembering;
  }

  beginFrame(): void {
    if (this.#isRemembering) this.duplicates.restored();
    this.#isRemembering = false;
  }

  endFrame(frame: StoredFrame): void {
    const { sequence } = frame;
    this.duplicates.endFrame(sequence);
    this.#sequence = sequence;
    this.#trail = trailWith(this.#trail, frame);
  }

  /** Moves to a position. If it returns true, this object must be discarded after the commit. */
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
        watermarkMs: this.duplicates.watermarkMs,
        duplicatesFrom: [Math.min(previous, from), Math.min(current, from)],
      };
    return isAnother;
  }

  position(): Position {
    if (this.#replaced !== undefined) return this.#replaced;
    const changes = this.duplicates.changes();
    this.#duplicatesFrom = changes.duplicatesFrom;
    this.#inFlight = { ...this.#storedPosition(), ...changes };
    return this.#inFlight;
  }

  committed(): void {
    this.duplicates.committed();
    if (this.#replaced === undefined) this.#committed = this.#inFlight;
  }

  /** Discards uncommitted data. If it returns false, the object must be discarded too. */
  returnTo(position: Position): boolean {
    const known = this.#committed;
    if (this.#isRemembering || this.#replaced !== undefined || known === undefined) return false;
    const isSame =
      known.epoch === position.epoch &&
      known.created === position.created &&
      known.sequence === position.sequence;
    if (!isSame) return false;
    this.duplicates.discard();
    this.#inFlight = undefined;
    this.#epoch = known.epoch;
    this.#created = known.created;
    this.#sequence = known.sequence;
    this.#trail = [...known.trail];
    this.#duplicatesFrom = known.duplicatesFrom;
    return true;
  }

  close(): void {
    this.duplicates.close();
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

/**
 * Returns the sequence of the last frame that was counted before an operator accepted an older copy
 * of the stream. Returns 0 if no copy was accepted.
 */
export function countedBefore(
  { stream, epoch }: Position,
  incidents: readonly IncidentRow[],
): number {
  const isThis = (one: IncidentRow): boolean =>
    one.kind === "copy_accepted" && one.stream === stream && one.epoch === epoch;
  return Math.max(0, ...incidents.filter(isThis).map(({ sequence }) => sequence));
}
