// Checks a body with the gateway's own code. It is used for a dry run. It is also used if a
// response lists fewer errors than it counts.

import { randomFillSync } from "node:crypto";
import { type Explanation, Typos, textOf } from "../../gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../gateway/intake/items.ts";
import { Tally } from "../../gateway/intake/tally.ts";
import type { RequestFrames } from "../../gateway/intake/work.ts";
import type { ItemErrorCode } from "../../platform/base/errors.ts";
import { type DropCode, warningCodes, warningTable } from "../../platform/base/warnings.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import { JsonRecordWriter } from "../../records/record.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import { UuidSource } from "../../records/uuid.ts";
import type { Verdict } from "../../records/verdict.ts";
import { bodyOf, type Events, type LineNote, lineHead } from "./batch.ts";

interface EventCheckOptions {
  readonly createScanner: (rows?: number) => BackgroundScanner;
  readonly recordBytesMax: number;
}

export interface Checked {
  readonly accepted: number;
  readonly notes: readonly LineNote[];
}

export class EventCheck {
  readonly #scanner: BackgroundScanner;
  readonly #taker: ItemTaker;
  readonly #records: JsonRecordWriter;
  readonly #recordBytesMax: number;
  readonly #sink = new NoSink();
  readonly #frames: RequestFrames = {
    sinkFor: (bytes) => this.#sink.withRoomFor(bytes),
    endTurn() {},
    finish() {},
    abandon() {},
  };

  constructor({ createScanner, recordBytesMax }: EventCheckOptions) {
    this.#scanner = createScanner();
    this.#recordBytesMax = recordBytesMax;
    const randomFill = (bytes: Uint8Array): Uint8Array => randomFillSync(bytes);
    this.#records = new JsonRecordWriter({ uuids: new UuidSource({ randomFill }) });
    this.#taker = new ItemTaker({
      slowScanner: createScanner(),
      records: this.#records,
      typos: new Typos(),
      onBug: (bug) => {
        throw bug;
      },
    });
  }

  check({ items, lines }: Events): Checked {
    if (items.length === 0) return { accepted: 0, notes: [] };
    const body = bodyOf(lineHead, items);
    const scanner = this.#scanner;
    const status = scanner.scan(body);
    if (status !== ScanStatus.Ok)
      throw new Error(`cannot scan a batch of the import: status ${status}`);
    const notes: LineNote[] = [];
    const tally = new AllNotes(lines, notes);
    const receivedAtMs = Date.now();
    const job: Job = {
      body,
      scanner,
      tally,
      receivedAtMs,
      recordBytesMax: this.#recordBytesMax,
      needsTimestamp: true,
      isEngage: false,
      skewMs: 0,
      unreadableSentAt: undefined,
      repaired: undefined,
      additions: undefined,
      frames: this.#frames,
      lane: "historical",
      isBot: false,
      quarantine: () => {},
      template: this.#records.begin({
        projectId: "import",
        lane: "historical",
        receivedAtMs,
        sentAtMs: Number.NaN,
        clientAddress: "",
      }),
    };
    const { table } = scanner;
    for (;;) {
      this.#taker.takeRows(job, 0, table[Header.RowCount]!);
      if (table[Header.FirstItem]! + table[Header.RowCount]! >= table[Header.ItemCount]!) break;
      scanner.scanMore(body);
    }
    return { accepted: tally.accepted, notes };
  }
}

class NoSink implements FrameSink {
  buffer = Buffer.allocUnsafe(65_536);
  readonly length = 0;
  readonly events = 0;

  withRoomFor(bytes: number): this {
    if (bytes > this.buffer.length) this.buffer = Buffer.allocUnsafe(bytes);
    return this;
  }

  commit(): void {}
  rollback(): void {}
}

class AllNotes extends Tally {
  readonly #lines: readonly number[];
  readonly #notes: LineNote[];

  constructor(lines: readonly number[], notes: LineNote[]) {
    super();
    this.#lines = lines;
    this.#notes = notes;
  }

  override get namesDrops(): boolean {
    return true;
  }

  override get namesErrors(): boolean {
    return true;
  }

  override get namesWarnings(): boolean {
    return true;
  }

  override drop(index: number, code: DropCode, explanation: Explanation): void {
    this.dropped++;
    this.#note(index, code, textOf(explanation), false);
  }

  override remove(index: number): void {
    this.dropped++;
    this.#note(index, removed.code, removed.detail, false);
  }

  override fail(index: number, code: ItemErrorCode, explanation: Explanation): void {
    this.dropped++;
    this.#note(index, code, textOf(explanation), false);
  }

  override store(index: number, verdict: Verdict, hint: string): void {
    this.accepted++;
    if (verdict.warnings === 0) return;
    for (const [bit, code] of warningCodes.entries()) {
      if ((verdict.warnings & (1 << bit)) !== 0)
        this.#note(index, code, textOf({ detail: warningTable[code].detail, hint }), true);
    }
  }

  #note(index: number, code: string, detail: string, isStored: boolean): void {
    this.#notes.push({ line: this.#lines[index]!, code, detail, isStored });
  }
}

export const removed = {
  code: "performance_event",
  detail: "$performance_event, which old browser SDKs sent, is not stored",
} as const;
