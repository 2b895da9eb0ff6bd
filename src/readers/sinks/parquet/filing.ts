// Makes a sealed segment into Parquet files: one for each folder that it has rows of. They are made
// beside the segment, and only when all of them are on the disk does one file name them: that is
// the commit. Then each is renamed to its place, and what it was made of is removed. Whatever is
// killed, at whatever point, doing it again ends with the same: before the commit nothing was in
// its place, and after it nothing is made anew.

import { randomBytes } from "node:crypto";
import { existsSync, readSync } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { greatestOf } from "../../../platform/base/extremes.ts";
import { sync, writeWhole } from "../../../platform/base/write-whole.ts";
import { type ParquetMaker, withParquetMaker } from "./parquet-maker.ts";
import { rowsFileBytes, tableOf } from "./rows.ts";
import { filesOf, type Journal, readJournal, type SegmentFiles } from "./segment.ts";

interface FilingOptions {
  readonly folder: string;
  /** What the files of this folder are called by, and of no other. */
  readonly id: string;
  readonly segment: number;
}

interface Filed {
  readonly files: number;
  readonly rows: number;
}

interface Commit {
  readonly streams: readonly StreamRange[];
  readonly files: readonly {
    readonly made: string;
    readonly place: string;
    readonly rows: number;
  }[];
}

/** What of a stream is in a segment: messages behind `after`, up to `to`. */
interface StreamRange {
  readonly stream: string;
  readonly epoch: number;
  readonly after: number;
  readonly to: number;
}

/** Where the rows of one folder stand in the segment: start and end, again and again. */
interface Part {
  readonly folder: string;
  readonly spans: number[];
}

const pieceBytes = 1_048_576;
/** 2,048 rows that are no longer than that are no trouble. */
const plainRowBytesMax = 16_384;

/** May be called again after it failed or was killed. */
export async function fileSegment(options: FilingOptions): Promise<Filed> {
  const files = filesOf(options.folder, options.segment);
  if (!existsSync(files.commit)) {
    const journal = await readJournal(files);
    await mustBeWhole(files, journal);
    const commit = await makeFiles(options, journal);
    await writeWhole(files.commit, JSON.stringify(commit));
  }
  const commit = JSON.parse(await readFile(files.commit, "utf8")) as Commit;
  await bringToPlaces(options, commit);
  await rm(files.making, { recursive: true, force: true });
  await rm(files.rows, { force: true });
  await rm(files.journal, { force: true });
  // As long as the journal may come back, the commit says that it is done with.
  await sync(path.dirname(files.journal));
  await rm(files.commit);
  return {
    files: commit.files.length,
    rows: commit.files.reduce((sum, { rows }) => sum + rows, 0),
  };
}

/** What is sealed has no end that nobody has acknowledged. Throws where a file is damaged. */
async function mustBeWhole(files: SegmentFiles, { bytes, rowsEnd }: Journal): Promise<void> {
  const { size } = await stat(files.rows);
  if (size !== rowsEnd)
    throw new Error(
      `${files.journal}, whole up to its byte ${bytes}, tells of ${rowsEnd} bytes of rows, and ${files.rows} has ${size}: one of them is damaged: put both back from a copy, or move both away, which leaves out their events`,
    );
}

async function makeFiles(options: FilingOptions, journal: Journal): Promise<Commit> {
  const { making } = filesOf(options.folder, options.segment);
  const streams = rangesOf(journal);
  const parts = partsOf(journal);
  await rm(making, { recursive: true, force: true });
  if (parts.length === 0) return { streams, files: [] };
  const rowBytesMax = greatestOf(journal.entries.map(({ rowBytesMax: bytes }) => bytes));
  const metadata = { penstock_streams: JSON.stringify(streams) };
  const files = await withParquetMaker(path.join(making, "scratch"), async (maker) => {
    await rm(making, { recursive: true, force: true });
    await mkdir(making, { mode: 0o700 });
    return await makeParts(options, { maker, parts, rowBytesMax, metadata });
  });
  await sync(making);
  return { streams, files };
}

interface Making {
  readonly maker: ParquetMaker;
  readonly parts: readonly Part[];
  readonly rowBytesMax: number;
  readonly metadata: Readonly<Record<string, string>>;
}

async function makeParts(
  { folder, id, segment }: FilingOptions,
  { maker, parts, rowBytesMax, metadata }: Making,
): Promise<Commit["files"]> {
  const { making, rows } = filesOf(folder, segment);
  const source = await open(rows, "r");
  const made: Commit["files"][number][] = [];
  // In a folder that was put back to an older copy numbers come again, with other events.
  const mark = randomBytes(4).toString("hex");
  const isAsItIs = parts.length === 1 && rowBytesMax <= plainRowBytesMax;
  try {
    for (const [index, part] of parts.entries()) {
      const name = `${id}-${String(segment).padStart(8, "0")}-${index}-${mark}.parquet`;
      const pieces = isAsItIs ? [rows] : await gather(source, part, making);
      const file = path.join(making, name);
      const table = tableOf(part.folder);
      const count = await maker.make({ table, rows: pieces, rowBytesMax, file, metadata });
      await sync(file);
      made.push({ made: name, place: path.posix.join(part.folder, name), rows: count });
      if (!isAsItIs) for (const piece of pieces) await rm(piece);
    }
  } finally {
    await source.close();
  }
  return made;
}

/** In the order of their folders. */
function partsOf({ entries }: Journal): Part[] {
  const parts = new Map<string, Part>();
  let at = 0;
  for (const { runs } of entries) {
    for (const [folder, bytes] of runs) {
      const part = parts.get(folder) ?? { folder, spans: [] };
      parts.set(folder, part);
      part.spans.push(at, at + bytes);
      at += bytes;
    }
  }
  return [...parts.values()].sort((a, b) => (a.folder < b.folder ? -1 : 1));
}

function rangesOf({ first, positions }: Journal): StreamRange[] {
  const before = new Map(first.map((one) => [one.stream, one]));
  return positions.flatMap(({ stream, epoch, sequence: to }) => {
    const was = before.get(stream);
    const after = was?.epoch === epoch ? was.sequence : 0;
    return after === to ? [] : [{ stream, epoch, after, to }];
  });
}

/**
 * Copies a part's rows into files of their own, and gives these. However long its rows are, DuckDB
 * takes 2,048 of a file at once: so none has more than some bytes, unless one run has.
 */
async function gather(source: FileHandle, { spans }: Part, folder: string): Promise<string[]> {
  const names: string[] = [];
  const piece = Buffer.allocUnsafe(pieceBytes);
  for (let index = 0; index < spans.length; ) {
    const name = path.join(folder, `rows-${names.length}`);
    const target = await open(name, "w", 0o600);
    names.push(name);
    try {
      let [filled, bytes] = [0, 0];
      for (; index < spans.length && bytes < rowsFileBytes; index += 2) {
        const end = spans[index + 1]!;
        bytes += end - spans[index]!;
        for (let at = spans[index]!; at < end; ) {
          // Spans may be some hundred bytes each, and these have been written a moment ago.
          const wanted = Math.min(end - at, piece.length - filled);
          const read = readSync(source.fd, piece, filled, wanted, at);
          if (read === 0) throw new Error(`${name}: the segment's rows end before they should`);
          filled += read;
          at += read;
          if (filled < piece.length) continue;
          await target.writeFile(piece);
          filled = 0;
        }
      }
      await target.writeFile(piece.subarray(0, filled));
    } finally {
      await target.close();
    }
  }
  return names;
}

async function bringToPlaces({ folder, segment }: FilingOptions, { files }: Commit): Promise<void> {
  const { making } = filesOf(folder, segment);
  /** Those that have a new name in them. */
  const touched = new Set<string>();
  for (const { made, place } of files) {
    const from = path.join(making, made);
    const to = path.join(folder, place);
    for (let above = path.dirname(to); above.length >= folder.length; above = path.dirname(above))
      touched.add(above);
    // It is in its place already, or was taken away from there.
    if (!existsSync(from)) continue;
    await mkdir(path.dirname(to), { recursive: true });
    await rename(from, to);
  }
  for (const one of touched) if (existsSync(one)) await sync(one);
}
