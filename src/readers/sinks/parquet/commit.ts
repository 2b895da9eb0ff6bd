// Commits a segment. The Parquet files are created in a temporary folder. The commit is the write
// of the manifest, which lists the files and the positions. After the commit, the files are moved
// to their final paths.

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { sync, writeWhole } from "../../../platform/base/files.ts";
import { withParquetMaker } from "./parquet-maker.ts";
import { rowsFileBytes, tableOf } from "./rows.ts";
import type { Part, Segment, SegmentEnd } from "./segment.ts";

interface Places {
  readonly folder: string;
  readonly own: string;
  readonly id: string;
}

interface MadeFile {
  readonly made: string;
  readonly place: string;
}

export interface Manifest extends SegmentEnd {
  readonly version: 1;
  readonly files: readonly MadeFile[];
}

const manifestName = "manifest.json";
const makingName = "making";
/** The file names of release 0.1, which wrote a journal for each segment. */
const oldName = /^\d{8}\.(journal|rows|commit|making)$/;
/**
 * A journal of a version that release 0.1 rejects. Without it, a sink of that release would not
 * find the positions, and would write all events again.
 */
const oldReleaseGuard = "99999999.journal";
const guardText = '{"version":2,"positions":"in manifest.json, for Penstock 0.2.0 and newer"}\n';
const pieceBytes = 1_048_576;

/** Commits the segment. After a failure, it can be called again if the segment is unchanged. */
export async function commitSegment(places: Places, segment: Segment): Promise<Manifest> {
  let manifest = readManifest(places);
  if (manifest?.segment !== segment.segment) {
    const files = await makeFiles(places, segment);
    const { segment: number, positions, incidents } = segment;
    manifest = { version: 1, segment: number, positions, incidents, files };
    await writeManifest(places, manifest);
  }
  await bringToPlaces(places, manifest);
  return manifest;
}

/** Completes the last commit. Removes the files of a segment that was not committed. */
export async function recover(places: Places): Promise<Manifest> {
  let manifest = readManifest(places);
  if (manifest === undefined) {
    manifest = { version: 1, ...endOfJournals(places) };
    await writeManifest(places, manifest);
  }
  await bringToPlaces(places, manifest);
  for (const name of readdirSync(places.own)) {
    if (oldName.test(name) && name !== oldReleaseGuard)
      await rm(path.join(places.own, name), { recursive: true });
  }
  await writeWhole(path.join(places.own, oldReleaseGuard), guardText);
  return manifest;
}

function readManifest({ own }: Places): Manifest | undefined {
  const file = path.join(own, manifestName);
  if (!existsSync(file)) return undefined;
  const manifest = parsed<Manifest>(file, readFileSync(file, "utf8"));
  if (manifest.version === 1) return manifest;
  throw new Error(`${file} is from a newer release of Penstock: start the sink of that release`);
}

async function writeManifest({ own }: Places, manifest: Manifest): Promise<void> {
  await writeWhole(path.join(own, manifestName), `${JSON.stringify(manifest)}\n`);
}

/** Returns the state of a folder of release 0.1 before its oldest uncommitted segment. */
function endOfJournals({ own }: Places): Omit<Manifest, "version"> {
  const names = readdirSync(own).sort();
  if (names.includes(oldReleaseGuard)) {
    throw new Error(
      `${path.join(own, manifestName)} is missing, and contains the positions: restore the folder from a copy, or name another folder`,
    );
  }
  const numbersOf = (ending: string): string[] =>
    names
      .filter((name) => oldName.test(name) && name.endsWith(ending))
      .map((one) => one.slice(0, 8));
  const read = <Content>(name: string): Content => {
    const file = path.join(own, name);
    return parsed(file, readFileSync(file, "utf8").split("\n", 1)[0]!);
  };
  const committed = numbersOf(".commit");
  const files = committed.flatMap((number) =>
    read<Pick<Manifest, "files">>(`${number}.commit`).files.map(({ made, place }) => {
      return { made: path.join(`${number}.making`, made), place };
    }),
  );
  const next = numbersOf(".journal").find((number) => !committed.includes(number));
  if (next === undefined) return { segment: 0, positions: [], incidents: [], files };
  const { segment, positions, incidents } = read<SegmentEnd>(`${next}.journal`);
  return { segment: segment - 1, positions, incidents, files };
}

function parsed<Content>(file: string, text: string): Content {
  try {
    return JSON.parse(text) as Content;
  } catch (error) {
    throw new Error(`${file} is damaged: restore the folder from a copy, or name another folder`, {
      cause: error,
    });
  }
}

async function makeFiles({ own, id }: Places, segment: Segment): Promise<MadeFile[]> {
  const making = path.join(own, makingName);
  await rm(making, { recursive: true, force: true });
  const parts = [...segment.parts].sort(([a], [b]) => (a < b ? -1 : 1));
  if (parts.length === 0) return [];
  const { rowBytesMax } = segment;
  const metadata = { penstock_streams: JSON.stringify(segment.streamRanges) };
  // The file name contains a random mark, because a folder that was restored from a copy uses
  // segment numbers again for different events.
  const mark = randomBytes(4).toString("hex");
  const number = String(segment.segment).padStart(8, "0");
  return await withParquetMaker(path.join(making, "scratch"), async (make) => {
    await rm(making, { recursive: true, force: true });
    await mkdir(making, { mode: 0o700 });
    const files: MadeFile[] = [];
    for (const [index, [place, part]] of parts.entries()) {
      const name = `${id}-${number}-${index}-${mark}.parquet`;
      const file = path.join(making, name);
      const rows = await copyRows(segment.scratch, part, making);
      const table = tableOf(place);
      const count = await make({ table, rows, rowBytesMax, file, metadata });
      if (count !== part.rows)
        throw new Error(
          `${place}: only ${count} of ${part.rows} rows could be read: restart the sink`,
        );
      await sync(file);
      files.push({ made: path.join(makingName, name), place: path.join(place, name) });
      for (const one of rows) await rm(one);
    }
    await sync(making);
    return files;
  });
}

async function copyRows(source: FileHandle, { spans }: Part, folder: string): Promise<string[]> {
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

async function bringToPlaces({ folder, own }: Places, { files }: Manifest): Promise<void> {
  await sync(own);
  const touched = new Set<string>();
  for (const { made, place } of files) {
    const from = path.join(own, made);
    const to = path.join(folder, place);
    for (let above = path.dirname(to); above.length >= folder.length; above = path.dirname(above))
      touched.add(above);
    if (!existsSync(from)) continue;
    await mkdir(path.dirname(to), { recursive: true });
    await rename(from, to);
  }
  for (const one of touched) if (existsSync(one)) await sync(one);
  await rm(path.join(own, makingName), { recursive: true, force: true });
}
