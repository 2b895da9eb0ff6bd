// The one object that stands for line after line. What a line does becomes an object of its own
// only when it is asked for.

import { Line } from "../../../records/lines.ts";
import type { StoredFrame } from "../../stream/stored-frame.ts";
import { EffectRules, isPlainEvent, makesPerson } from "../rules/effect-of.ts";
import type { EventFacts } from "../rules/event-facts.ts";
import type { PlainTexts } from "../rules/plain-texts.ts";
import { frameRank, lineRank } from "../stamp.ts";
import type { EventEffect, LinePlace, Stamp, UsageClass } from "../types.ts";
import { EventHash } from "./event-hash.ts";
import { IdHash } from "./id-hash.ts";
import type { StoredLine } from "./line.ts";
import { usageClassOf } from "./line-facts.ts";
import type { WrittenLines } from "./written-lines.ts";

export class ReusedLine implements StoredLine {
  frame: StoredFrame;
  line = 0;
  projectId = "";
  uuidHashHigh = 0;
  uuidHashLow = 0;
  receivedAtMs = Number.NaN;
  timeMs = Number.NaN;
  usageClass: UsageClass = "identified";
  distinctId = "";
  idHashHigh = 0;
  idHashLow = 0;
  hasPerson = false;
  isPlain = true;
  readonly #facts: EventFacts;
  readonly #rules: EffectRules;
  readonly #hash: EventHash;
  readonly #idHash = new IdHash();
  readonly #written: WrittenLines;
  /** The index of the written line whose facts are not all filled; -1: they are. */
  #unfilled = -1;
  #frameRank: string | undefined = undefined;

  constructor(options: {
    readonly frame: StoredFrame;
    /** The facts of each line, before `set`. */
    readonly facts: EventFacts;
    readonly written: WrittenLines;
    readonly texts: PlainTexts;
    /** The one that `written` has. */
    readonly uuidKey: Uint32Array;
  }) {
    this.frame = options.frame;
    this.#facts = options.facts;
    this.#written = options.written;
    this.#hash = new EventHash(options.uuidKey);
    this.#rules = new EffectRules(options.texts);
  }

  beginFrame(frame: StoredFrame): void {
    this.frame = frame;
    this.#frameRank = undefined;
  }

  /** Takes over what the facts say of the line with this index. */
  set(line: number): void {
    const facts = this.#facts;
    this.#unfilled = -1;
    this.#take(line, true);
    this.#hash.set(facts);
    this.uuidHashHigh = this.#hash.high;
    this.uuidHashLow = this.#hash.low;
    this.#hashId();
  }

  /** As `set`, of a line of which `written` has filled the facts, but not yet the rest. */
  setWritten(line: number, index: number): void {
    const written = this.#written;
    const hasWrites = written.hasWrites(index);
    if (hasWrites) written.fillRest(this.#facts, index);
    this.#unfilled = hasWrites ? -1 : index;
    this.#take(line, hasWrites);
    this.uuidHashHigh = written.hashWord(index, Line.UuidHigh);
    this.uuidHashLow = written.hashWord(index, Line.UuidLow);
    if (written.hasPlainId(index)) {
      this.idHashHigh = written.hashWord(index, Line.IdHigh);
      this.idHashLow = written.hashWord(index, Line.IdLow);
    } else this.#hashId();
  }

  place(): LinePlace {
    const { lane, partition, epoch, sequence } = this.frame;
    return { lane, partition, epoch, sequence, line: this.line };
  }

  stamp(): Stamp {
    return { timeMs: this.timeMs, rank: this.#rank() };
  }

  effect(): EventEffect {
    if (this.#unfilled >= 0) this.#written.fillRest(this.#facts, this.#unfilled);
    return this.#rules.effectOf(this.#facts, this.place(), this.#rank());
  }

  #take(line: number, hasWrites: boolean): void {
    const facts = this.#facts;
    this.line = line;
    this.projectId = facts.projectId;
    this.receivedAtMs = facts.receivedAtMs;
    this.timeMs = facts.timeMs;
    this.distinctId = facts.distinctId;
    this.usageClass = usageClassOf(facts);
    this.hasPerson = makesPerson(facts);
    this.isPlain = isPlainEvent(facts, hasWrites);
  }

  #hashId(): void {
    this.#idHash.set(this.distinctId);
    this.idHashHigh = this.#idHash.high;
    this.idHashLow = this.#idHash.low;
  }

  #rank(): string {
    this.#frameRank ??= frameRank(this.frame);
    return lineRank(this.#frameRank, this.line);
  }
}
