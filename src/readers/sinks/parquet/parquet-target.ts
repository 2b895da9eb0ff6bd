// Parquet files as a target. A batch goes into a segment, with how far the streams are, and is then
// as safe as in a database. When the segment is full or old enough it is sealed, the next one is
// begun, and beside that the sealed one is made into files: so files are of a good size although a
// batch is of a second, and an end of the process at any point neither loses nor repeats anything.

import type { Log } from "../../../platform/base/log.ts";
import type { SinkBatch, SinkPosition, SinkTarget, WriteOutcome } from "../sink-target.ts";
import { mustBeNext } from "../sink-target.ts";
import { fileFault } from "./file-fault.ts";
import { fileSegment } from "./filing.ts";
import { ParquetFolder } from "./parquet-folder.ts";
import { duckdb } from "./parquet-maker.ts";
import { rowsOf } from "./rows.ts";
import { SeenEvents } from "./seen-events.ts";
import { filesOf, incidentsKept, Segment } from "./segment.ts";

export interface ParquetTargetOptions {
  readonly folder: string;
  /** This process: another sink names it while it waits for the folder. */
  readonly pid: number;
  /** A segment is made into files when it has so many bytes, or its first event is so old. */
  readonly segmentBytesMax: number;
  readonly segmentAgeMsMax: number;
  readonly log: Pick<Log, "info" | "warn">;
}

const againMs = 5_000;

export class ParquetTarget implements SinkTarget {
  readonly shown: string;
  readonly #options: ParquetTargetOptions;
  readonly #folder: ParquetFolder;
  /** Undefined: not open, or nobody knows what is in it. */
  #segment: Segment | undefined;
  /** One thing at a time is done with the open segment. */
  #last: Promise<unknown> = Promise.resolve();
  /** The sealed segment that is made into files. Never rejects. */
  #filing: Promise<void> = Promise.resolve();
  readonly #seen = new SeenEvents();
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Nothing is to be opened again by itself. */
  #isClosed = false;

  constructor(options: ParquetTargetOptions) {
    this.#options = options;
    this.#folder = new ParquetFolder(options.folder, options.pid);
    this.shown = `Parquet files in ${this.#folder.folder}`;
  }

  get faults(): readonly string[] {
    return this.#fault === undefined ? [] : [this.#fault];
  }

  open(): Promise<readonly SinkPosition[]> {
    this.#isClosed = false;
    return this.#doing("open", async () => {
      clearTimeout(this.#timer);
      await this.#letGoOfSegment();
      // What failed comes again, and is new.
      this.#seen.forget();
      await this.#filing;
      await this.#folder.take();
      // Before anything is taken in that could not be made into files.
      duckdb();
      const open = await this.#fileSealed();
      this.#fault = undefined;
      this.#segment = await this.#openSegment(open);
      this.#awaitAge();
      return this.#segment.positions;
    });
  }

  write(batch: SinkBatch): Promise<WriteOutcome> {
    return this.#doing("write to", async () => {
      const segment = this.#segment;
      if (segment === undefined) throw new Error(`${this.shown}: not open`);
      if (this.#fault !== undefined) throw new Error(this.#fault);
      try {
        this.#folder.mustBeHeld();
        mustBeNext(batch, (stream) => segment.positionOf(stream));
        const nowMs = Date.now();
        const events = batch.events.filter((event) => this.#seen.add(event));
        const incidents = batch.incidents.filter((one) => !isKnown(segment, one));
        const rows = rowsOf({ events, rejected: batch.rejected, incidents }, nowMs);
        const { positions } = batch;
        await segment.append({ ...rows, positions, incidents: incidents.map(nameOf) }, nowMs);
        if (segment.bytes >= this.#options.segmentBytesMax) await this.#seal(segment);
        else this.#awaitAge();
        return {
          written: events.length,
          duplicates: batch.events.length - events.length,
          refused: 0,
        };
      } catch (error) {
        await this.#letGoOfSegment();
        throw error;
      }
    });
  }

  /** What is in the segment is made into files first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#doing("close", async () => {
      clearTimeout(this.#timer);
      try {
        if (this.#segment?.hasRows === true && this.#fault === undefined)
          await this.#seal(this.#segment);
      } catch (error) {
        const reason = (error as Error).message;
        this.#options.log.warn({ reason }, "what is in hand is made into files at the next start");
      }
      await this.#letGoOfSegment();
      await this.#filing;
      this.#folder.release();
    });
  }

  #doing<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work).catch((error: unknown) => {
      throw fileFault(error, `${what} ${this.#folder.folder}`);
    });
    this.#last = result.catch(() => {});
    return result;
  }

  /** Gives the number of the last one, which is open; undefined: there is none yet. */
  async #fileSealed(): Promise<number | undefined> {
    const { written, committed } = this.#folder.segments();
    const open = written.at(-1);
    const sealed = new Set([...written, ...committed].filter((one) => one !== open));
    for (const segment of [...sealed].sort((a, b) => a - b)) await this.#file(segment);
    return open;
  }

  async #file(segment: number): Promise<void> {
    const { folder, id } = this.#folder;
    const sinceMonotonicMs = performance.now();
    const filed = await fileSegment({ folder, id, segment });
    const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
    if (filed.files > 0)
      this.#options.log.info({ ...filed, seconds, segment }, "made a segment into Parquet files");
  }

  async #openSegment(number: number | undefined): Promise<Segment> {
    const { folder } = this.#folder;
    if (number !== undefined) return await Segment.resume(filesOf(folder, number));
    const first = { number: 1, positions: [], incidents: [] };
    return await Segment.begin(filesOf(folder, 1), first);
  }

  async #seal(segment: Segment): Promise<void> {
    clearTimeout(this.#timer);
    // One sealed segment at a time: who is slower than the streams makes them wait.
    await this.#filing;
    if (this.#fault !== undefined) throw new Error(this.#fault);
    const { number, positions, incidents } = segment;
    const next = { number: number + 1, positions, incidents };
    this.#segment = await Segment.begin(filesOf(this.#folder.folder, number + 1), next);
    await segment.close();
    this.#filing = this.#fileBeside(number);
  }

  async #fileBeside(segment: number): Promise<void> {
    try {
      await this.#file(segment);
    } catch (error) {
      const { message } = fileFault(error, `make Parquet files in ${this.#folder.folder}`);
      this.#options.log.warn({ reason: message, segment }, "making Parquet files failed");
      this.#hinderedBy(message);
    }
  }

  /** Where no batch comes, nobody else calls `open`. */
  #hinderedBy(fault: string): void {
    this.#fault = fault;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#isClosed) return;
      this.open().catch((error: Error) => this.#hinderedBy(error.message));
    }, againMs).unref();
  }

  /** Seals the segment when its first event is old enough. */
  #awaitAge(): void {
    const segment = this.#segment;
    if (segment?.begunAtMs === undefined) return;
    clearTimeout(this.#timer);
    const leftMs = segment.begunAtMs + this.#options.segmentAgeMsMax - Date.now();
    const due = (): Promise<void> =>
      this.#doing("write to", async () => {
        if (this.#segment === segment) await this.#seal(segment);
      });
    this.#timer = setTimeout(
      () => due().catch((error: Error) => this.#hinderedBy(error.message)),
      Math.max(0, leftMs),
    ).unref();
  }

  async #letGoOfSegment(): Promise<void> {
    const segment = this.#segment;
    this.#segment = undefined;
    clearTimeout(this.#timer);
    await segment?.close();
  }
}

type Incident = SinkBatch["incidents"][number];

/** A stream that is stopped says so at each start; that is the same incident. */
function isKnown({ incidents }: Segment, incident: Incident): boolean {
  return incidents.slice(-incidentsKept).includes(nameOf(incident));
}

function nameOf({ stream, epoch, sequence, kind, detail }: Incident): string {
  return [stream, epoch, sequence, kind, detail].join(" ");
}
