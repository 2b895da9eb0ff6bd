// Reads a file as batches. Detects its format, and skips the lines that an earlier run has
// imported.

import type { Scanner } from "../../records/table.ts";
import { CommandError } from "../context.ts";
import { type Batch, bodyHead, cutOffCode, type LineNote } from "./batch.ts";
import { BatchMaker } from "./batch-maker.ts";
import { detectFormat, linesLookedAt } from "./formats/detect.ts";
import type { Format, FormatOptions } from "./formats/format.ts";
import { type BlockLimits, blockBytes, LineBlock } from "./line-block.ts";
import { LineHash } from "./line-hash.ts";
import { LineCutter } from "./lines.ts";

export interface BatchesOptions {
  readonly name: string;
  readonly key: string;
  /** The format of the file; undefined to detect it from the first lines. */
  readonly format: Format | undefined;
  readonly formatOptions: FormatOptions;
  readonly limits: BlockLimits;
  readonly lineBytesMax: number;
  readonly createScanner: (rows?: number) => Scanner;
  /** The lines that an earlier run has imported, with the fingerprint that identifies them. */
  readonly done: DoneLines | undefined;
  readonly begun: (format: Format) => void;
}

interface DoneLines {
  readonly lines: number;
  readonly fingerprint: string;
  /** The last line of the last request of the earlier run. A batch ends after the same line. */
  readonly sending?: number;
}

interface TakenLine {
  /** The content of the line; empty for a line that is too long. */
  readonly bytes: Buffer;
  readonly number: number;
  readonly isTooLong: boolean;
}

export class Batches {
  readonly #options: BatchesOptions;
  readonly #head: Buffer;
  readonly #hash = new LineHash();
  readonly #cutter: LineCutter;
  readonly #blockBytes: number;
  readonly #freeBuffers: Buffer[] = [];
  #block: LineBlock;
  #notes: LineNote[] = [];
  #maker: BatchMaker | undefined = undefined;
  #lastLine = 0;

  constructor(options: BatchesOptions) {
    this.#options = options;
    this.#head = bodyHead(options.key);
    this.#cutter = new LineCutter(options.lineBytesMax);
    this.#blockBytes = blockBytes(this.#head, options.limits, options.lineBytesMax);
    this.#block = this.#newBlock();
  }

  /**
   * Yields the batches in order. Throws a CommandError if the format cannot be detected, or if the
   * earlier run has imported another file.
   */
  async *of(chunks: AsyncIterable<Buffer>): AsyncGenerator<Batch, void, void> {
    const early: TakenLine[] = [];
    for await (const chunk of chunks) {
      this.#cutter.push(chunk);
      while (this.#cutter.next()) yield* this.#takeLine(early);
    }
    if (this.#cutter.last() && !this.#isCutOff(early)) yield* this.#takeLine(early);
    if (this.#maker === undefined) yield* this.#begin(early);
    if (this.#isSkipping) throw this.#otherFile("it has fewer lines");
    yield { ...this.#finishBlock(), isLast: true };
  }

  get #isSkipping(): boolean {
    return this.#lastLine < (this.#options.done?.lines ?? 0);
  }

  /**
   * Returns whether the last line has no line feed and is not JSON. Another program may still write
   * it, so the next run reads it again.
   */
  #isCutOff(early: readonly TakenLine[]): boolean {
    const { bytes, start, end, number, isTooLong } = this.#cutter;
    // If the file has a single line, its format is unknown.
    const isFirst = this.#maker === undefined && early.length === 0;
    if (isTooLong || start === end || isFirst || this.#isSkipping) return false;
    if (isJson(bytes.toString("utf8", start, end))) return false;
    const detail = "the file ends in the middle of this line: the next run reads it again";
    this.#notes.push({ line: number, code: cutOffCode, detail, isStored: false });
    return true;
  }

  *#takeLine(early: TakenLine[]): Generator<Batch, void, void> {
    const { bytes, start, end, number, isTooLong } = this.#cutter;
    if (this.#maker !== undefined) {
      if (isTooLong || start === end) this.#passOver(number, isTooLong);
      else yield* this.#add(bytes, [start, end], number);
      return;
    }
    early.push({ bytes: Buffer.from(bytes.subarray(start, end)), number, isTooLong });
    if (early.length === linesLookedAt) yield* this.#begin(early);
  }

  *#begin(waiting: TakenLine[]): Generator<Batch, void, void> {
    const early = waiting.splice(0);
    const { name, format: wanted, formatOptions, createScanner, begun } = this.#options;
    const texts = early
      .filter(({ bytes }) => bytes.length > 0)
      .map(({ bytes }) => bytes.toString("utf8"));
    const format = wanted ?? (texts.length === 0 ? undefined : detectFormat(texts));
    if (typeof format === "string") throw new CommandError(`import ${name}: ${format}`);
    if (format === undefined) {
      for (const { number, isTooLong } of early) this.#passOver(number, isTooLong);
      return;
    }
    if (formatOptions.timeZone !== undefined && !format.hasLocalTimes)
      throw new CommandError(
        `import ${name}: --time-zone does not apply: ${format.title} has no local times`,
      );
    begun(format);
    this.#maker = new BatchMaker({
      ...{ head: this.#head, format, formatOptions, hash: this.#hash, createScanner },
      takeBuffer: () => this.#takeBuffer(),
      giveBuffer: (buffer) => void this.#freeBuffers.push(buffer),
    });
    for (const { bytes, number, isTooLong } of early) {
      if (bytes.length === 0) this.#passOver(number, isTooLong);
      else yield* this.#add(bytes, [0, bytes.length], number);
    }
  }

  #passOver(number: number, isTooLong: boolean): void {
    const wasSkipping = this.#isSkipping;
    this.#lastLine = number;
    if (wasSkipping) {
      this.#endSkipping();
      return;
    }
    if (!isTooLong) return;
    const detail = `the line has more than ${this.#options.lineBytesMax} bytes`;
    this.#notes.push({ line: number, code: "line_too_long", detail, isStored: false });
  }

  *#add(
    bytes: Buffer,
    [start, end]: readonly [number, number],
    number: number,
  ): Generator<Batch, void, void> {
    const cut = this.#options.done?.sending ?? 0;
    const last = this.#block.numbers.at(-1);
    // Compared by block, because skipped lines may follow its last line.
    if (last !== undefined && last <= cut && number > cut) yield this.#finishBlock();
    if (!this.#block.add(bytes, start, end, number)) {
      if (this.#isSkipping) this.#skipBlock();
      else yield this.#finishBlock();
      this.#block.add(bytes, start, end, number);
    }
    const wasSkipping = this.#isSkipping;
    this.#lastLine = number;
    if (wasSkipping) this.#endSkipping();
  }

  #skipBlock(): void {
    const block = this.#block;
    block.close();
    for (let index = 0; index < block.count; index++)
      this.#hash.add(block.buffer, block.starts[index]!, block.ends[index]!);
    this.#freeBuffers.push(block.buffer);
    this.#block = this.#newBlock();
  }

  /** Checks after the last line of the earlier run whether the file is the same. */
  #endSkipping(): void {
    if (this.#isSkipping) return;
    this.#skipBlock();
    if (this.#hash.fingerprint() !== this.#options.done?.fingerprint)
      throw this.#otherFile("its lines differ");
  }

  #otherFile(why: string): CommandError {
    const { name, done } = this.#options;
    return new CommandError(
      `import ${name}: this is not the file of which ${done?.lines} lines are done: ${why}. Use --restart to import it from the beginning`,
    );
  }

  #finishBlock(): Batch {
    const [block, notes] = [this.#block, this.#notes];
    this.#block = this.#newBlock();
    this.#notes = [];
    const maker = this.#maker;
    if (maker !== undefined) return maker.make(block, notes, this.#lastLine);
    const fingerprint = this.#hash.fingerprint();
    const nothing = { body: Buffer.alloc(0), starts: [], ends: [], lines: [], links: 0 };
    return { ...nothing, release: () => {}, notes, lastLine: this.#lastLine, fingerprint };
  }

  #newBlock(): LineBlock {
    return new LineBlock(this.#takeBuffer(), this.#head, this.#options.limits);
  }

  #takeBuffer(): Buffer {
    return this.#freeBuffers.pop() ?? Buffer.allocUnsafeSlow(this.#blockBytes);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
