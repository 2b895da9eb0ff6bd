// A segment: the events of some seconds or minutes, before they are made into Parquet files. Two
// files: rows, and a journal with a line for each batch that says how far the rows go with it and
// how far each stream is. A batch is there once its line of the journal is on the disk: what stands
// behind the last such line is of a batch that nobody has acknowledged, and is cut off.

import { type FileHandle, mkdir, open, readFile } from "node:fs/promises";
import path from "node:path";
import { writeWhole } from "../../../platform/base/write-whole.ts";
import { trailLength } from "../../stream/trail.ts";
import type { SinkPosition } from "../sink-target.ts";
import type { BatchRows, Run } from "./rows.ts";

/** The first line: where the segment begins. */
interface Head {
  readonly version: 1;
  readonly segment: number;
  readonly positions: readonly SinkPosition[];
  /** Incidents that were noted lately: a stream that is stopped says so at each start. */
  readonly incidents: readonly string[];
}

/** A batch. Positions have only what is new of their trails. */
interface Entry {
  readonly atMs: number;
  /** Where its rows end. */
  readonly rowsEnd: number;
  readonly rowBytesMax: number;
  readonly runs: readonly (readonly [folder: string, bytes: number, rows: number])[];
  readonly positions: readonly SinkPosition[];
  readonly incidents: readonly string[];
}

/** What a journal says, up to its last whole line. */
export interface Journal {
  readonly segment: number;
  readonly first: readonly SinkPosition[];
  readonly positions: readonly SinkPosition[];
  readonly incidents: readonly string[];
  readonly entries: readonly Entry[];
  readonly bytes: number;
  readonly rowsEnd: number;
}

interface NewBatch extends BatchRows {
  readonly positions: readonly SinkPosition[];
  readonly incidents: readonly string[];
}

export const incidentsKept = 100;

/** The names of the files of a segment. */
export interface SegmentFiles {
  readonly journal: string;
  readonly rows: string;
  /** Names the Parquet files, once all of them are made. */
  readonly commit: string;
  /** Where they are made. */
  readonly making: string;
}

export const bookKeeping = "_penstock";

export function filesOf(folder: string, segment: number): SegmentFiles {
  const name = path.join(folder, bookKeeping, String(segment).padStart(8, "0"));
  return {
    ...{ journal: `${name}.journal`, rows: `${name}.rows`, commit: `${name}.commit` },
    making: `${name}.making`,
  };
}

/** Throws where it is none, or its rows are not all there. */
export async function readJournal(files: SegmentFiles): Promise<Journal> {
  const text = await readFile(files.journal);
  const lines = text.toString("utf8").split("\n");
  const head = parsed<Head>(lines[0]);
  if (head?.version !== 1)
    throw new Error(`${files.journal} is damaged, or of a newer release: its first line is none`);
  let [positions, bytes] = [head.positions, Buffer.byteLength(lines[0]!) + 1];
  let { incidents } = head;
  const entries: Entry[] = [];
  // A line without an end is none.
  for (const line of lines.slice(1, -1)) {
    const entry = parsed<Entry>(line);
    if (entry === undefined) break;
    entries.push(entry);
    positions = withMoved(positions, entry.positions);
    incidents = [...incidents, ...entry.incidents].slice(-incidentsKept);
    bytes += Buffer.byteLength(line) + 1;
  }
  const { segment } = head;
  const rowsEnd = entries.at(-1)?.rowsEnd ?? 0;
  return { segment, first: head.positions, positions, incidents, entries, bytes, rowsEnd };
}

function earlier(one: number, other: number): number {
  return Math.min(one, other);
}

function parsed<Line>(line: string | undefined): Line | undefined {
  try {
    return JSON.parse(line ?? "") as Line;
  } catch {
    return undefined;
  }
}

/** In another epoch the numbers mean other messages. */
function withMoved(
  known: readonly SinkPosition[],
  moved: readonly SinkPosition[],
): readonly SinkPosition[] {
  const positions = new Map(known.map((one) => [one.stream, one]));
  for (const position of moved) {
    const before = positions.get(position.stream);
    const trail =
      before?.epoch === position.epoch
        ? [...before.trail, ...position.trail].slice(-trailLength)
        : position.trail;
    positions.set(position.stream, { ...position, trail });
  }
  return [...positions.values()];
}

export class Segment {
  readonly number: number;
  readonly #journal: FileHandle;
  readonly #rows: FileHandle;
  #journalBytes: number;
  #rowsBytes: number;
  #positions: ReadonlyMap<string, SinkPosition>;
  #incidents: readonly string[];
  #begunAtMs: number | undefined;

  private constructor(journal: Journal, handles: { journal: FileHandle; rows: FileHandle }) {
    this.number = journal.segment;
    this.#journal = handles.journal;
    this.#rows = handles.rows;
    this.#journalBytes = journal.bytes;
    this.#rowsBytes = journal.rowsEnd;
    this.#positions = new Map(journal.positions.map((one) => [one.stream, one]));
    this.#incidents = journal.incidents;
    const times = journal.entries.filter(({ rowsEnd }) => rowsEnd > 0).map(({ atMs }) => atMs);
    if (times.length > 0) this.#begunAtMs = times.reduce(earlier, Date.now());
  }

  /** With its journal the one before it is sealed: nothing is written to that any more. */
  static async begin(
    files: SegmentFiles,
    { number, positions, incidents }: Pick<Segment, "number" | "positions" | "incidents">,
  ): Promise<Segment> {
    await mkdir(path.dirname(files.journal), { recursive: true });
    await (await open(files.rows, "w", 0o600)).close();
    const head: Head = { version: 1, segment: number, positions, incidents };
    await writeWhole(files.journal, `${JSON.stringify(head)}\n`);
    return await Segment.resume(files);
  }

  /** Cuts off what is of no whole batch. */
  static async resume(files: SegmentFiles): Promise<Segment> {
    const journal = await readJournal(files);
    const handles = {
      journal: await open(files.journal, "r+"),
      rows: await open(files.rows, "r+"),
    };
    try {
      const { size } = await handles.rows.stat();
      if (size < journal.rowsEnd)
        throw new Error(
          `${files.rows} has ${size} bytes, and should have ${journal.rowsEnd}: it was not copied whole`,
        );
      await handles.journal.truncate(journal.bytes);
      await handles.rows.truncate(journal.rowsEnd);
      // It may be sealed before anything else is written to it, and the next one begins where the
      // journal ends: a last line that is in memory alone would be lost in a power cut.
      if (size > journal.rowsEnd) await handles.rows.sync();
      await handles.journal.sync();
      return new Segment(journal, handles);
    } catch (error) {
      await handles.journal.close();
      await handles.rows.close();
      throw error;
    }
  }

  /** Those of rows and journal together. */
  get bytes(): number {
    return this.#journalBytes + this.#rowsBytes;
  }

  get hasRows(): boolean {
    return this.#rowsBytes > 0;
  }

  /**
   * When the first rows came; undefined: there are none. Where the clock was set back since, its
   * first time after that counts: else the segment would wait until the clock is there again.
   */
  get begunAtMs(): number | undefined {
    return this.#begunAtMs;
  }

  get positions(): readonly SinkPosition[] {
    return [...this.#positions.values()];
  }

  get incidents(): readonly string[] {
    return this.#incidents;
  }

  positionOf(stream: string): SinkPosition | undefined {
    return this.#positions.get(stream);
  }

  /** Once it is fulfilled, the batch is there. After a failure nobody knows: `resume` does. */
  async append(batch: NewBatch, nowMs: number): Promise<void> {
    const { bytes, runs, rowBytesMax } = batch;
    const rowsEnd = this.#rowsBytes + bytes.length;
    if (bytes.length > 0) {
      await writeAt(this.#rows, bytes, this.#rowsBytes);
      await this.#rows.datasync();
    }
    const moved = batch.positions.map((position) => this.#newOf(position));
    const entry: Entry = {
      ...{ atMs: nowMs, rowsEnd, rowBytesMax, runs: runs.map(asArray), positions: moved },
      incidents: batch.incidents,
    };
    const line = Buffer.from(`${JSON.stringify(entry)}\n`);
    await writeAt(this.#journal, line, this.#journalBytes);
    await this.#journal.datasync();
    this.#journalBytes += line.length;
    this.#rowsBytes = rowsEnd;
    if (rowsEnd > 0) this.#begunAtMs = earlier(this.#begunAtMs ?? nowMs, nowMs);
    this.#incidents = [...this.#incidents, ...batch.incidents].slice(-incidentsKept);
    const positions = withMoved(this.positions, moved);
    this.#positions = new Map(positions.map((one) => [one.stream, one]));
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#rows.close();
  }

  #newOf(position: SinkPosition): SinkPosition {
    const known = this.#positions.get(position.stream);
    if (known?.epoch !== position.epoch) return position;
    const end = known.trail.at(-1)?.sequence ?? 0;
    return { ...position, trail: position.trail.filter(({ sequence }) => sequence > end) };
  }
}

function asArray({ folder, bytes, rows }: Run): [string, number, number] {
  return [folder, bytes, rows];
}

/** All of the bytes, from `at` on. */
async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, from, bytes.length - from, at + from);
    from += bytesWritten;
  }
}
