// The events of some seconds or minutes, before they are written to Parquet files. The rows are in
// a scratch file. The file may be lost, because the streams contain the events until the commit.

import { type FileHandle, open } from "node:fs/promises";
import type { SinkBatch, SinkPosition } from "../sink-target.ts";
import type { BatchRows } from "./rows.ts";

export interface SegmentEnd {
  readonly segment: number;
  readonly positions: readonly SinkPosition[];
  readonly incidents: readonly string[];
}

export interface Part {
  readonly spans: number[];
  rows: number;
}

interface StreamRange {
  readonly stream: string;
  readonly epoch: number;
  readonly after: number;
  readonly to: number;
}

type Incident = SinkBatch["incidents"][number];

const incidentsMax = 100;

export class Segment implements SegmentEnd {
  readonly segment: number;
  readonly parts = new Map<string, Part>();
  readonly scratch: FileHandle;
  readonly #first: ReadonlyMap<string, SinkPosition>;
  readonly #positions: Map<string, SinkPosition>;
  incidents: readonly string[];
  bytes = 0;
  rows = 0;
  rowBytesMax = 0;
  isEmpty = true;

  private constructor(scratch: FileHandle, before: SegmentEnd) {
    this.segment = before.segment + 1;
    this.scratch = scratch;
    this.#first = new Map(before.positions.map((one) => [one.stream, one]));
    this.#positions = new Map(this.#first);
    this.incidents = before.incidents;
  }

  static async begin(scratch: string, before: SegmentEnd): Promise<Segment> {
    return new Segment(await open(scratch, "w+", 0o600), before);
  }

  /** Returns the next segment in the same file. The current segment must be committed. */
  async next(): Promise<Segment> {
    await this.scratch.truncate(0);
    return new Segment(this.scratch, this);
  }

  get positions(): readonly SinkPosition[] {
    return [...this.#positions.values()];
  }

  get streamRanges(): readonly StreamRange[] {
    return this.positions.flatMap(({ stream, epoch, sequence: to }) => {
      const first = this.#first.get(stream);
      const after = first?.epoch === epoch ? first.sequence : 0;
      return after === to ? [] : [{ stream, epoch, after, to }];
    });
  }

  positionOf(stream: string): SinkPosition | undefined {
    return this.#positions.get(stream);
  }

  hasIncident(incident: Incident): boolean {
    return this.incidents.includes(nameOf(incident));
  }

  /** Appends rows, without syncing them to disk. If it fails, the segment is unchanged. */
  async append(
    { bytes, runs, rowBytesMax }: BatchRows,
    { positions, incidents }: Pick<SinkBatch, "positions" | "incidents">,
  ): Promise<void> {
    for (let from = 0; from < bytes.length; ) {
      const at = this.bytes + from;
      const { bytesWritten } = await this.scratch.write(bytes, from, bytes.length - from, at);
      from += bytesWritten;
    }
    for (const run of runs) {
      const part = this.parts.get(run.folder) ?? { spans: [], rows: 0 };
      this.parts.set(run.folder, part);
      part.spans.push(this.bytes, this.bytes + run.bytes);
      part.rows += run.rows;
      this.rows += run.rows;
      this.bytes += run.bytes;
    }
    this.rowBytesMax = Math.max(this.rowBytesMax, rowBytesMax);
    for (const position of positions) this.#positions.set(position.stream, position);
    this.incidents = [...this.incidents, ...incidents.map(nameOf)].slice(-incidentsMax);
    this.isEmpty = false;
  }

  async close(): Promise<void> {
    await this.scratch.close();
  }
}

function nameOf({ stream, epoch, sequence, kind, detail }: Incident): string {
  return [stream, epoch, sequence, kind, detail].join(" ");
}
