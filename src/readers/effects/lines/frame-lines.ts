// Reads the lines of a stored frame in order, and calls the visitor for each.

import { Buffer } from "node:buffer";
import { createNativeScanner } from "../../../records/native.ts";
import { frameRows, RecordReader } from "../../../records/reader.ts";
import type { RecordView } from "../../../records/record-view.ts";
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
