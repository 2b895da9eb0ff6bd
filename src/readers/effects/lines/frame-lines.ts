import { Line, LineFlag, type RecordView } from "../../../records/lines.ts";
import { createNativeScanner } from "../../../records/native.ts";
import { frameRows, RecordReader } from "../../../records/reader.ts";
import type { Scanner } from "../../../records/table.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import { EffectRules, isPlainEvent, makesPerson } from "../rules/effect-of.ts";
import { EventFacts } from "../rules/event-facts.ts";
import { PlainTexts } from "../rules/plain-texts.ts";
import { frameRank, lineRank } from "../stamp.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";
import { EventHash, IdHash } from "./hashes.ts";
import type { LineVisitor, StoredLine } from "./line.ts";
import { LineFacts, usageClassOf } from "./line-facts.ts";

export class FrameLines {
  readonly #records: RecordReader;
  readonly #line: ReusedLine;

  constructor(scanner: Scanner = createNativeScanner(frameRows)) {
    this.#records = new RecordReader(scanner);
    this.#line = new ReusedLine(new PlainTexts(scanner.normalise), this.#records.uuidKey);
  }

  /**
   * Reads the lines of a frame. Yields to the caller whenever RecordReader yields. Throws if the
   * scanner is out of memory.
   */
  *read(frame: StoredFrame, visitor: LineVisitor): Generator<void, void> {
    const line = this.#line;
    line.beginFrame(frame);
    yield* this.#records.read(frame.data, {
      record(record) {
        const fault = line.fill(record);
        if (fault === undefined) visitor.line(line);
        else visitor.unreadable(frame, record.line, frame.projectId ?? record.projectId, fault);
      },
      unreadable: (fault, line) => visitor.unreadable(frame, line, frame.projectId ?? "", fault),
    });
  }
}

class ReusedLine extends EventFacts implements StoredLine {
  frame!: StoredFrame;
  line = 0;
  uuidHashHigh = 0;
  uuidHashLow = 0;
  usageClass: UsageClass = "identified";
  idHashHigh = 0;
  idHashLow = 0;
  hasPerson = false;
  isPlain = true;
  readonly #facts = new LineFacts();
  readonly #rules: EffectRules;
  readonly #hash: EventHash;
  readonly #idHash = new IdHash();
  #unfilled: RecordView | undefined = undefined;
  #frameRank: string | undefined = undefined;

  constructor(texts: PlainTexts, uuidKey: Uint32Array) {
    super();
    this.#hash = new EventHash(uuidKey);
    this.#rules = new EffectRules(texts);
  }

  beginFrame(frame: StoredFrame): void {
    this.frame = frame;
    this.#frameRank = undefined;
  }

  fill(record: RecordView): Rejection | undefined {
    const { projectId, storedAtMs } = this.frame;
    const fault = this.#facts.fill(this, record, storedAtMs);
    if (fault !== undefined) return fault;
    if (projectId !== undefined && this.projectId !== projectId) {
      const detail = `its project_id ${this.projectId} is not the project of its message`;
      return { reason: "wrong_project", detail };
    }
    const hasWrites = record.has(LineFlag.HasWrites);
    if (hasWrites) this.#facts.fillRest(this, record);
    this.#unfilled = hasWrites ? undefined : record;
    this.line = record.line;
    this.usageClass = usageClassOf(this);
    this.hasPerson = makesPerson(this);
    this.isPlain = isPlainEvent(this, hasWrites);
    this.#fillHashes(record);
    return undefined;
  }

  place(): LinePlace {
    const { lane, partition, epoch, sequence } = this.frame;
    return { lane, partition, epoch, sequence, line: this.line };
  }

  stamp(): Stamp {
    return { timeMs: this.timeMs, rank: this.#rank() };
  }

  effect(): EventEffect {
    if (this.#unfilled !== undefined) this.#facts.fillRest(this, this.#unfilled);
    return this.#rules.effectOf(this, this.place(), this.#rank());
  }

  #fillHashes(record: RecordView): void {
    if (record.isWritten) {
      this.uuidHashHigh = record.hashWord(Line.UuidHigh);
      this.uuidHashLow = record.hashWord(Line.UuidLow);
    } else {
      this.#hash.set(this);
      this.uuidHashHigh = this.#hash.high;
      this.uuidHashLow = this.#hash.low;
    }
    if (record.has(LineFlag.PlainId)) {
      this.idHashHigh = record.hashWord(Line.IdHigh);
      this.idHashLow = record.hashWord(Line.IdLow);
    } else {
      this.#idHash.set(this.distinctId);
      this.idHashHigh = this.#idHash.high;
      this.idHashLow = this.#idHash.low;
    }
  }

  #rank(): string {
    this.#frameRank ??= frameRank(this.frame);
    return lineRank(this.#frameRank, this.line);
  }
}
