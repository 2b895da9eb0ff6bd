// Reads a file as batches. It detects the format and skips the lines that an earlier run has
// imported.

import type { Scanner } from "../../records/table.ts";
import { CommandError } from "../context.ts";
import { type Batch, cutOffCode, type LineNote } from "./batch.ts";
import { BatchMaker } from "./batch-maker.ts";
import { LineHash } from "./event-uuid.ts";
import { detectFormat, linesLookedAt } from "./formats/detect.ts";
import type { Format, FormatOptions } from "./formats/format.ts";
import { withFiniteNumbers } from "./json-text.ts";
import { type Line, LineCutter } from "./lines.ts";

export interface BatchLimits {
  /** Maximum bytes of the lines of a batch. A batch may exceed it only if it has a single line. */
  readonly bytesMax: number;
  readonly linesMax: number;
}

export interface BatchesOptions {
  readonly name: string;
  readonly format: Format | undefined;
  readonly formatOptions: FormatOptions;
  readonly limits: BatchLimits;
  readonly lineBytesMax: number;
  readonly createScanner: (rows?: number) => Scanner;
  readonly done: DoneLines | undefined;
  readonly begun: (format: Format) => void;
}

interface DoneLines {
  readonly lines: number;
  readonly fingerprint: string;
  readonly sending?: number;
}

export class Batches {
  readonly #options: BatchesOptions;
  readonly #hash = new LineHash();
  readonly #cutter: LineCutter;
  #lines: Line[] = [];
  #bytes = 0;
  #notes: LineNote[] = [];
  #maker: BatchMaker | undefined = undefined;
  #lastLine = 0;

  constructor(options: BatchesOptions) {
    this.#options = options;
    this.#cutter = new LineCutter(options.lineBytesMax);
  }

  /**
   * Yields the batches. Throws a CommandError if the format cannot be detected, or if the earlier
   * run has imported a different file.
   */
  async *of(chunks: AsyncIterable<Buffer>): AsyncGenerator<Batch, void, void> {
    const early: Line[] = [];
    for await (const chunk of chunks)
      for (const line of this.#cutter.cut(chunk)) yield* this.#take(line, early);
    const last = this.#cutter.last();
    if (last !== undefined && !this.#isCutOff(last, early)) yield* this.#take(last, early);
    if (this.#maker === undefined) yield* this.#begin(early);
    if (this.#isSkipping) throw this.#otherFile("it has fewer lines");
    yield { ...this.#finish(), isLast: true };
  }

  get #isSkipping(): boolean {
    return this.#lastLine < (this.#options.done?.lines ?? 0);
  }

  /**
   * Returns true for a last line that has no line feed and is not JSON. Another program may still
   * be writing it, so the next run will read it again.
   */
  #isCutOff({ bytes, number, isTooLong }: Line, early: readonly Line[]): boolean {
    const { format, done } = this.#options;
    const isOnly = this.#maker === undefined && early.length === 0 && format === undefined;
    if (isTooLong || bytes.length === 0 || isOnly || number <= (done?.lines ?? 0)) return false;
    if (isJson(bytes.toString("utf8"))) return false;
    const detail = "the file ends in the middle of this line: the next run reads it again";
    this.#notes.push({ line: number, code: cutOffCode, detail, isStored: false });
    return true;
  }

  *#take(line: Line, early: Line[]): Generator<Batch, void, void> {
    if (this.#maker !== undefined) {
      yield* this.#add(line);
      return;
    }
    early.push(line);
    if (early.length === linesLookedAt) yield* this.#begin(early.splice(0));
  }

  *#begin(early: readonly Line[]): Generator<Batch, void, void> {
    const { name, format: wanted, formatOptions, createScanner, begun } = this.#options;
    const texts = early
      .filter(({ bytes }) => bytes.length > 0)
      .map(({ bytes }) => bytes.toString("utf8"));
    const format = wanted ?? (texts.length === 0 ? undefined : detectFormat(texts));
    if (typeof format === "string") throw new CommandError(`cannot import ${name}: ${format}`);
    if (format !== undefined) {
      if (formatOptions.timeZone !== undefined && !format.hasLocalTimes)
        throw new CommandError(
          `cannot import ${name}: --time-zone does not apply: ${format.title} has no local times`,
        );
      begun(format);
      this.#maker = new BatchMaker({ format, formatOptions, hash: this.#hash, createScanner });
    }
    for (const line of early) yield* this.#add(line);
  }

  *#add(line: Line): Generator<Batch, void, void> {
    const { done, limits, lineBytesMax } = this.#options;
    const { bytes, number, isTooLong } = line;
    if (this.#isSkipping) {
      if (bytes.length > 0) this.#hash.add(bytes);
      this.#lastLine = number;
      if (!this.#isSkipping && this.#hash.fingerprint() !== done?.fingerprint)
        throw this.#otherFile("its lines differ");
      return;
    }
    if (bytes.length > 0) {
      const last = this.#lines.at(-1)?.number ?? number;
      const isFull =
        this.#lines.length >= limits.linesMax || this.#bytes + bytes.length >= limits.bytesMax;
      // If an earlier run stopped while it was sending a batch, this batch must end at the same
      // line. Otherwise, the gateway would not recognize it. `sending` may be the number of a
      // skipped line.
      const sending = done?.sending ?? 0;
      if ((last <= sending && number > sending) || (isFull && this.#lines.length > 0))
        yield this.#finish();
      this.#lines.push(line);
      this.#bytes += bytes.length + 1;
    } else if (isTooLong) {
      const detail = `the line has more than ${lineBytesMax} bytes`;
      this.#notes.push({ line: number, code: "line_too_long", detail, isStored: false });
    }
    this.#lastLine = number;
  }

  #otherFile(why: string): CommandError {
    const { name, done } = this.#options;
    return new CommandError(
      `cannot resume the import of ${name}: it is not the file of the earlier run, which imported ${done?.lines} lines (${why}). Use --restart to import it from the beginning`,
    );
  }

  #finish(): Batch {
    const [lines, notes] = [this.#lines, this.#notes];
    [this.#lines, this.#notes, this.#bytes] = [[], [], 0];
    const lastLine = this.#lastLine;
    if (this.#maker !== undefined) return this.#maker.make(lines, notes, lastLine);
    const fingerprint = this.#hash.fingerprint();
    return { items: [], lines: [], links: 0, notes, lastLine, fingerprint };
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(withFiniteNumbers(text));
    return true;
  } catch {
    return false;
  }
}
