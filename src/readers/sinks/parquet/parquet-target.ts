// The Parquet target. Until a segment is committed, its events exist only in the streams. After a
// crash, at most one segment is read again.

import path from "node:path";
import type { Log } from "../../../platform/base/log.ts";
import {
  mustBeNext,
  type SinkBatch,
  type SinkPosition,
  type SinkTarget,
  type WriteOutcome,
} from "../sink-target.ts";
import { commitSegment, type Manifest, recover } from "./commit.ts";
import { ParquetFolder } from "./parquet-folder.ts";
import { duckdb } from "./parquet-maker.ts";
import { rowsOf } from "./rows.ts";
import { SeenEvents } from "./seen-events.ts";
import { Segment } from "./segment.ts";

export interface ParquetTargetOptions {
  readonly folder: string;
  readonly pid: number;
  readonly segmentBytesMax: number;
  readonly segmentAgeMsMax: number;
  readonly log: Pick<Log, "info" | "warn">;
}

const retryMs = 5_000;

export class ParquetTarget implements SinkTarget {
  readonly shown: string;
  readonly #options: ParquetTargetOptions;
  readonly #folder: ParquetFolder;
  #segment: Segment | undefined;
  #committed: Manifest | undefined;
  #last: Promise<unknown> = Promise.resolve();
  readonly #seen = new SeenEvents();
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ParquetTargetOptions) {
    this.#options = options;
    this.#folder = new ParquetFolder(options.folder, options.pid);
    this.shown = `Parquet files in ${this.#folder.folder}`;
  }

  get faults(): readonly string[] {
    return this.#fault === undefined ? [] : [this.#fault];
  }

  get committed(): readonly SinkPosition[] {
    return this.#committed?.positions ?? [];
  }

  /** Opens the target. The open segment is kept if this sink still has the lock. */
  open(): Promise<readonly SinkPosition[]> {
    return this.#doing("open", async () => {
      // The events of failed batches will be read again, and they must not count as duplicates.
      this.#seen.forget();
      if (!this.#folder.isTaken) await this.#letGoOfSegment();
      if (this.#segment === undefined) {
        await this.#folder.take();
        // The call throws if DuckDB is missing, so that no event is accepted without it.
        duckdb();
        this.#committed = await recover(this.#folder);
        const scratch = path.join(this.#folder.own, "rows");
        this.#segment = await Segment.begin(scratch, this.#committed);
        this.#fault = undefined;
      } else if (this.#fault !== undefined) await this.#commit(this.#segment);
      return this.#segment.positions;
    });
  }

  write(batch: SinkBatch): Promise<WriteOutcome> {
    return this.#doing("write to", async () => {
      const segment = this.#segment;
      if (segment === undefined) throw new Error(`${this.shown}: not open`);
      if (this.#fault !== undefined) throw new Error(this.#fault);
      this.#folder.mustBeTaken();
      mustBeNext(batch, (stream) => segment.positionOf(stream));
      const { segmentBytesMax, segmentAgeMsMax } = this.#options;
      const events = batch.events.filter((event) => this.#seen.add(event));
      const incidents = batch.incidents.filter((one) => !segment.hasIncident(one));
      const rows = rowsOf({ events, rejected: batch.rejected, incidents }, Date.now());
      if (segment.isEmpty) this.#commitIn(segmentAgeMsMax, segment);
      await segment.append(rows, { positions: batch.positions, incidents });
      if (segment.bytes >= segmentBytesMax) await this.#commit(segment);
      const duplicates = batch.events.length - events.length;
      return { written: events.length, duplicates, refused: 0 };
    });
  }

  async close(): Promise<void> {
    await this.#doing("close", async () => {
      clearTimeout(this.#timer);
      try {
        if (this.#segment?.isEmpty === false) await this.#commit(this.#segment);
      } catch {
        // The error is already logged. The events are read again at the next start.
      }
      await this.#letGoOfSegment();
      this.#folder.release();
    });
  }

  #doing<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work).catch((error: unknown) => {
      throw fileError(error, `${what} ${this.#folder.folder}`);
    });
    this.#last = result.catch(() => {});
    return result;
  }

  async #commit(segment: Segment): Promise<void> {
    clearTimeout(this.#timer);
    const sinceMonotonicMs = performance.now();
    const { segment: number, rows } = segment;
    try {
      this.#folder.mustBeTaken();
      this.#committed = await commitSegment(this.#folder, segment);
      this.#segment = await segment.next();
      this.#fault = undefined;
    } catch (error) {
      const { message: reason } = fileError(
        error,
        `create Parquet files in ${this.#folder.folder}`,
      );
      this.#options.log.warn({ reason, segment: number }, "sink cannot create Parquet files");
      this.#fault = reason;
      this.#commitIn(retryMs, segment);
      throw new Error(reason, { cause: error });
    }
    const files = this.#committed.files.length;
    const seconds = (performance.now() - sinceMonotonicMs) / 1_000;
    if (files > 0)
      this.#options.log.info(
        { files, rows, seconds, segment: number },
        "sink committed a segment as Parquet files",
      );
  }

  #commitIn(ms: number, segment: Segment): void {
    clearTimeout(this.#timer);
    const due = async (): Promise<void> => {
      if (this.#segment === segment && !segment.isEmpty) await this.#commit(segment);
    };
    this.#timer = setTimeout(() => this.#doing("write to", due).catch(() => {}), ms).unref();
  }

  async #letGoOfSegment(): Promise<void> {
    const segment = this.#segment;
    this.#segment = undefined;
    this.#fault = undefined;
    clearTimeout(this.#timer);
    await segment?.close();
  }
}

function fileError(error: unknown, doing: string): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof Error) || code === undefined || !/^E[A-Z]+$/.test(code))
    return error as Error;
  return new Error(`cannot ${doing}: ${message}`, { cause: error });
}
