// Reads the lines of a stored frame in order, and calls the visitor for each.

import { Buffer } from "node:buffer";
import { Line, LineFlag } from "../../../records/lines.ts";
import { createNativeScanner } from "../../../records/native.ts";
import { frameRows, RecordReader } from "../../../records/reader.ts";
import type { RecordView } from "../../../records/record-view.ts";
import type { Scanner } from "../../../records/table.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import { EffectRules, isPlainEvent, makesPerson } from "../rules/effect-of.ts";
import { EventFacts } from "../rules/event-facts.ts";
import { PlainTexts } from "../rules/plain-texts.ts";
import { frameRank, lineRank } from "../stamp.ts";
import type { EventEffect, LinePlace, Stamp, UsageClass } from "../types.ts";
import { EventHash, IdHash } from "./hashes.ts";
import type { LineVisitor, StoredLine } from "./line.ts";
import { LineFacts, usageClassOf } from "./line-facts.ts";

const noFrame: StoredFrame = {
  stream: "",
  lane: "live",
  partition: 0,
  epoch: 1,
  sequence: 0,
  projectId: undefined,
  messageId: "",
  storedAtMs: 0,
  data: Buffer.alloc(0),
};

/** Hashes of events are comparable only within one reader. */
export class FrameLines {
  readonly #records: RecordReader;
  readonly #facts = new EventFacts();
  readonly #lineFacts = new LineFacts();
  readonly #line: ReusedLine;

  /** The reader must be the only user of `scanner`. */
  constructor(scanner: Scanner = createNativeScanner(frameRows)) {
    this.#records = new RecordReader(scanner);
    this.#line = new ReusedLine({
      frame: noFrame,
      facts: this.#facts,
      lineFacts: this.#lineFacts,
      texts: new PlainTexts(scanner.normalise),
      uuidKey: this.#records.uuidKey,
    });
  }

  /**
   * Calls the visitor for every line that is not blank. Yields as RecordReader does. Throws an
   * Error if the scanner has not enough memory.
   */
  *read(frame: StoredFrame, visitor: LineVisitor): Generator<void, void> {
    this.#line.beginFrame(frame);
    yield* this.#records.read(frame.data, {
      record: (record) => this.#record(frame, visitor, record),
      unreadable: (fault, line) => visitor.unreadable(frame, line, frame.projectId ?? "", fault),
    });
  }

  #record(frame: StoredFrame, visitor: LineVisitor, record: RecordView): void {
    const { line } = record;
    const fault = this.#lineFacts.fill(this.#facts, record, frame.storedAtMs);
    if (fault !== undefined) {
      visitor.unreadable(frame, line, frame.projectId ?? record.projectId, fault);
      return;
    }
    const { projectId } = this.#facts;
    if (frame.projectId !== undefined && projectId !== frame.projectId) {
      const detail = `it says that it is of the project ${projectId}`;
      visitor.unreadable(frame, line, frame.projectId, { reason: "wrong_project", detail });
      return;
    }
    this.#line.set(record);
    visitor.line(this.#line);
  }
}

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
