// Reads the lines of a stored frame in order, and calls the visitor for each readable or unreadable
// line. Retains no line.

import { Buffer } from "node:buffer";
import type { RecordView } from "../../../records/lines.ts";
import { createNativeScanner } from "../../../records/native.ts";
import { frameRows, RecordReader } from "../../../records/reader.ts";
import type { Scanner } from "../../../records/table.ts";
import type { StoredFrame } from "../../stream/frame.ts";
import { EventFacts } from "../rules/event-facts.ts";
import { PlainTexts } from "../rules/plain-texts.ts";
import type { LineVisitor } from "./line.ts";
import { LineFacts } from "./line-facts.ts";
import { ReusedLine } from "./reused-line.ts";

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

/**
 * Reads frames. Each reader has its own hash key, so hashes of events are comparable only within
 * one reader.
 */
export class FrameLines {
  readonly #records: RecordReader;
  readonly #facts = new EventFacts();
  readonly #lineFacts = new LineFacts();
  readonly #line: ReusedLine;

  /** Creates a reader, which must be the only user of `scanner`. */
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
   * Calls the visitor for every line that is not blank, in order. Blank lines count in line
   * numbers. Yields as RecordReader does.
   *
   * @throws Error if the scanner has not enough memory.
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
