import { stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { BackgroundScanner } from "../../records/table.ts";
import { CommandError } from "../context.ts";
import { completed, type DoneAnswer, namedNotes, refusedText } from "./answer.ts";
import { type Batch, bodyHead, bodyOf, type Events, type LineNote, paddingOf } from "./batch.ts";
import { Batches, type BatchLimits } from "./batches.ts";
import { Counts, grouped, isLoss } from "./counts.ts";
import { type Checked, EventCheck, removed } from "./event-check.ts";
import { formatNamed } from "./formats/detect.ts";
import type { Format, FormatOptions } from "./formats/format.ts";
import { type ImportState, type StateFile, targetDifference, targetOf } from "./import-state.ts";
import { inputChunks } from "./input.ts";
import type { Progress } from "./progress.ts";
import { type Sender, Stopped } from "./sender.ts";

interface FileImportOptions {
  readonly file: string;
  readonly url: URL;
  readonly key: string;
  readonly format: Format | undefined;
  readonly formatOptions: FormatOptions;
  readonly limits: BatchLimits;
  readonly lineBytesMax: number;
  readonly restart: boolean;
  /** If set, the import resumes even if the address or the key has changed. */
  readonly sameProject: boolean;
  readonly stateFile: StateFile | undefined;
  readonly sender: Sender | undefined;
  readonly createScanner: (rows?: number) => BackgroundScanner;
  readonly progress: Progress;
  readonly stdin: () => Readable;
  readonly stop: AbortSignal;
}

const listedPerCode = 10;

export class FileImport {
  readonly #options: FileImportOptions;
  readonly #name: string;
  readonly #input = { bytesRead: 0 };
  readonly #listed = new Map<string, number>();
  #bytesTotal: number | undefined = undefined;
  #check: EventCheck | undefined = undefined;
  #last: Batch | undefined = undefined;
  #done: Pick<ImportState, "lines" | "fingerprint" | "sending"> = { lines: 0, fingerprint: "" };
  #sending: Promise<void> | undefined = undefined;
  #saved: Promise<void> = Promise.resolve();
  #isPadded = true;
  #hasReportedSplit = false;
  #hasBegun = false;
  readonly #warnedLines = new Set<number>();
  #found: readonly LineNote[] = [];
  #formatName = "";
  counts = new Counts();
  isStopped = false;
  isDoneBefore = false;

  constructor(options: FileImportOptions) {
    this.#options = options;
    this.#name = options.file === "-" ? "standard input" : options.file;
  }

  get hasEvents(): boolean {
    return this.#formatName !== "";
  }

  /** Runs the import. Saves the position. Rejects with a CommandError if the import must stop. */
  async run(): Promise<void> {
    const { stateFile } = this.#options;
    stateFile?.take();
    try {
      await this.#run();
    } finally {
      await stateFile?.release();
    }
  }

  async #run(): Promise<void> {
    const { file, stop } = this.#options;
    const before = await this.#stateBefore();
    this.#bytesTotal = file === "-" ? undefined : await bytesOf(file);
    this.counts = new Counts(before?.counts);
    const batches = this.#batches(before);
    let isAtEnd = false;
    try {
      for (;;) {
        const { done, value: batch } = await batches.next();
        await this.#settle();
        isAtEnd = done === true;
        if (isAtEnd || stop.aborted) break;
        this.#last = batch!;
        await this.#begin(batch!);
      }
    } catch (error) {
      // If the rest of the file cannot be read, the running request may still succeed.
      await this.#settle().catch(() => {});
      if (!(error instanceof Stopped)) throw error;
    } finally {
      await batches.return();
      await this.#saved;
    }
    this.isStopped = !isAtEnd;
    if (isAtEnd && this.#last !== undefined) await this.#save({ finished: true });
    this.isDoneBefore = before?.finished === true && this.#last?.lastLine === before.lines;
  }

  /** Starts a request. Resolves when the whole body was passed to the kernel. */
  async #begin(batch: Batch): Promise<void> {
    const { promise: handedOver, resolve } = Promise.withResolvers<void>();
    this.#sending = this.#take(batch, resolve);
    await Promise.race([handedOver, this.#sending.catch(() => {})]);
  }

  async #settle(): Promise<void> {
    const sending = this.#sending;
    this.#sending = undefined;
    if (sending === undefined) return;
    await sending;
    // If saving failed, the import ends, because a later run would store more lines twice.
    await this.#saved;
    const { lastLine: lines, fingerprint } = this.#last!;
    this.#done = { lines, fingerprint };
    this.#saved = this.#save({ finished: false });
    this.#saved.catch(() => {});
  }

  async #stateBefore(): Promise<ImportState | undefined> {
    const { stateFile, restart, format, progress, url, key } = this.#options;
    if (stateFile === undefined) return undefined;
    if (restart) {
      await stateFile.remove();
      return undefined;
    }
    const state = await stateFile.read();
    if (state === undefined) return undefined;
    const isOther =
      targetDifference(state.target, targetOf(url, key)) !== undefined ||
      (format !== undefined && format.name !== state.format);
    if (state.lines === 0 && isOther) return undefined;
    const { lines, fingerprint, sending } = state;
    this.#done = { lines, fingerprint, ...(sending !== undefined && { sending }) };
    this.#mustGoThere(state, stateFile);
    if (format !== undefined && format.name !== state.format) {
      throw new CommandError(
        `cannot resume ${this.#name}: the earlier run (${stateFile.name}) used the format ${state.format}, not ${format.name}. Use --format ${state.format}, or --restart to import from the beginning`,
      );
    }
    if (!state.finished && state.lines > 0)
      progress.say(`${this.#name}: ${grouped(state.lines)} lines are done, resuming after them`);
    return state;
  }

  #mustGoThere(state: ImportState, stateFile: StateFile): void {
    const { url, key, sameProject } = this.#options;
    const difference = targetDifference(state.target, targetOf(url, key));
    if (difference === undefined || sameProject) return;
    throw new CommandError(
      `cannot import ${this.#name}: ${stateFile.name} is of an earlier run with ${grouped(state.lines)} lines done: ${difference}. If the project is the same, as after \`project rotate\`, use --same-project; for another project, name another file with --state; --restart sends everything again`,
    );
  }

  #batches(before: ImportState | undefined): AsyncGenerator<Batch, void, void> {
    const { file, stdin, format, formatOptions, limits, lineBytesMax } = this.#options;
    const { createScanner, progress } = this.#options;
    const batches = new Batches({
      name: this.#name,
      formatOptions,
      limits,
      lineBytesMax,
      createScanner,
      done: before,
      format: format ?? formatNamed(before?.format),
      begun: ({ name, title }) => {
        this.#formatName = name;
        if (format === undefined && before === undefined)
          progress.say(`${this.#name}: ${title} (--format ${name})`);
      },
    });
    return batches.of(inputChunks(file, { stdin, progress: this.#input }));
  }

  async #take(batch: Batch, handedOver: () => void): Promise<void> {
    const { sender, progress } = this.#options;
    // The state file is written before the first request, so that an error is reported before
    // anything is sent. The rate does not include the lines of an earlier run.
    if (!this.#hasBegun) {
      await this.#save({ finished: false });
      progress.begin(this.#position());
    }
    this.#hasBegun = true;
    const hasEvents = batch.items.length > 0;
    if (hasEvents && batch.isLast === true)
      await this.#save({ finished: false, sending: batch.lastLine });
    this.#warnedLines.clear();
    this.#found = batch.notes;
    if (sender === undefined) {
      this.#noteFound();
      const { accepted, notes } = this.#checked(batch);
      this.counts.stored += accepted;
      for (const note of notes) this.#note(note);
    } else if (hasEvents) await this.#send(sender, batch, handedOver);
    this.#noteFound();
    this.counts.links += batch.links;
    this.counts.warned += this.#warnedLines.size;
    progress.update(this.#position());
  }

  async #send(sender: Sender, events: Events, handedOver: () => void): Promise<void> {
    const { items, lines } = events;
    const head = bodyHead(this.#options.key);
    const padding = this.#isPadded ? paddingOf(head, items) : 0;
    const answer = await sender.send(bodyOf(head, items, padding), items.length, handedOver);
    switch (answer.kind) {
      case "done":
        this.#count(answer, events);
        return;
      case "refused":
        throw new CommandError(
          `cannot import ${this.#name}: lines ${lines[0]} to ${lines.at(-1)} ${refusedText(answer)}`,
        );
      case "tooLarge":
        break;
      default:
        answer satisfies never;
    }
    const { why } = answer;
    if (padding > 0) {
      this.#isPadded = false;
      await this.#send(sender, events, handedOver);
      return;
    }
    if (items.length === 1) {
      this.#noteFound(lines[0]);
      this.#note({ line: lines[0]!, code: "too_large", detail: why, isStored: false });
      return;
    }
    if (!this.#hasReportedSplit) {
      this.#hasReportedSplit = true;
      this.#options.progress.say(`splitting requests (see --batch-bytes): ${why}`);
    }
    const middle = items.length >>> 1;
    for (const [from, to] of [[0, middle], [middle]])
      await this.#send(
        sender,
        { items: items.slice(from, to), lines: lines.slice(from, to) },
        handedOver,
      );
  }

  /**
   * Records the notes of a batch. It must be called after the response. If the request fails, the
   * next run records the notes.
   */
  #noteFound(lastLine = Number.POSITIVE_INFINITY): void {
    const found = this.#found;
    this.#found = found.filter(({ line }) => line > lastLine);
    for (const note of found) if (note.line <= lastLine) this.#note(note);
  }

  #count(answer: DoneAnswer, events: Events): void {
    const { accepted, dropped, namesSome } = answer;
    this.counts.stored += accepted;
    this.#noteFound(events.lines.at(-1));
    const named = namedNotes(answer, events.lines);
    const notes = namesSome ? completed(this.#checked(events).notes, named) : named;
    for (const note of notes) this.#note(note);
    const noted = notes.filter(({ isStored, code }) => !isStored && code !== removed.code).length;
    if (dropped > noted) this.counts.note({ code: "not_named", isStored: false }, dropped - noted);
    const gone = events.lines.length - accepted - dropped;
    const removedNoted = notes.filter(({ code }) => code === removed.code).length;
    if (gone > removedNoted)
      this.counts.note({ code: removed.code, isStored: false }, gone - removedNoted);
  }

  #checked(events: Events): Checked {
    const { createScanner, lineBytesMax } = this.#options;
    this.#check ??= new EventCheck({ createScanner, recordBytesMax: lineBytesMax });
    return this.#check.check(events);
  }

  #note(note: LineNote): void {
    this.counts.note(note);
    if (note.isStored) this.#warnedLines.add(note.line);
    else this.#warnedLines.delete(note.line);
    const noted = (this.#listed.get(note.code) ?? 0) + 1;
    this.#listed.set(note.code, noted);
    const isListed = this.#options.sender === undefined && isLoss(note);
    if (noted > listedPerCode && !isListed) return;
    const fate = note.isStored ? "stored" : "not stored";
    const more =
      noted === listedPerCode && !isListed ? "; further lines of this kind are only counted" : "";
    this.#options.progress.say(
      `${this.#name}:${note.line}: ${fate}: ${note.code}: ${note.detail}${more}`,
    );
  }

  async #save(more: Pick<ImportState, "finished" | "sending">): Promise<void> {
    const { stateFile, url, key } = this.#options;
    await stateFile?.save({
      version: 1,
      target: targetOf(url, key),
      format: this.#formatName,
      ...this.#done,
      ...more,
      counts: this.counts.text(),
    });
  }

  #position() {
    return {
      name: this.#name,
      events: this.counts.stored,
      bytesRead: this.#input.bytesRead,
      bytesTotal: this.#bytesTotal,
    };
  }
}

async function bytesOf(file: string): Promise<number | undefined> {
  try {
    const { size } = await stat(file);
    return size > 0 ? size : undefined;
  } catch {
    return undefined;
  }
}
