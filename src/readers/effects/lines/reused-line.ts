// The line that is filled again for each record.

import { Line, LineFlag } from "../../../records/lines.ts";
import type { RecordView } from "../../../records/record-view.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import { EffectRules, isPlainEvent, makesPerson } from "../rules/effect-of.ts";
import type { EventFacts } from "../rules/event-facts.ts";
import type { PlainTexts } from "../rules/plain-texts.ts";
import { frameRank, lineRank } from "../stamp.ts";
import type { EventEffect, LinePlace, Stamp, UsageClass } from "../types.ts";
import { EventHash } from "./event-hash.ts";
import { IdHash } from "./id-hash.ts";
import type { StoredLine } from "./line.ts";
import { type LineFacts, usageClassOf } from "./line-facts.ts";

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
  readonly #lineFacts: LineFacts;
  /** The record whose remaining facts are not filled yet. */
  #unfilled: RecordView | undefined = undefined;
  #frameRank: string | undefined = undefined;

  constructor(options: {
    readonly frame: StoredFrame;
    /** The facts of the current line, which `lineFacts` fills before `set`. */
    readonly facts: EventFacts;
    readonly lineFacts: LineFacts;
    readonly texts: PlainTexts;
    readonly uuidKey: Uint32Array;
  }) {
    this.frame = options.frame;
    this.#facts = options.facts;
    this.#lineFacts = options.lineFacts;
    this.#hash = new EventHash(options.uuidKey);
    this.#rules = new EffectRules(options.texts);
  }

  beginFrame(frame: StoredFrame): void {
    this.frame = frame;
    this.#frameRank = undefined;
  }

  /** `lineFacts.fill` was called for the record. */
  set(record: RecordView): void {
    const hasWrites = record.has(LineFlag.HasWrites);
    const { isWritten } = record;
    if (hasWrites) this.#lineFacts.fillRest(this.#facts, record);
    this.#unfilled = hasWrites ? undefined : record;
    this.#take(record.line, hasWrites);
    if (isWritten) {
      this.uuidHashHigh = record.hashWord(Line.UuidHigh);
      this.uuidHashLow = record.hashWord(Line.UuidLow);
    } else {
      this.#hash.set(this.#facts);
      this.uuidHashHigh = this.#hash.high;
      this.uuidHashLow = this.#hash.low;
    }
    if (record.has(LineFlag.PlainId)) {
      this.idHashHigh = record.hashWord(Line.IdHigh);
      this.idHashLow = record.hashWord(Line.IdLow);
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
    if (this.#unfilled !== undefined) this.#lineFacts.fillRest(this.#facts, this.#unfilled);
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
