// Exports events as one Parquet file with the columns of `penstock sink parquet`. The rows are
// collected in a folder next to the file.

import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import path from "node:path";
import { isOfManyProjects } from "../../platform/nats/names.ts";
import { withParquetMaker } from "../../readers/sinks/parquet/parquet-maker.ts";
import { rowsFileBytes, rowsOf } from "../../readers/sinks/parquet/rows.ts";
import { type SinkRecord, SinkRecords } from "../../readers/sinks/sink-records.ts";
import type { StreamName } from "../../readers/stream/stored-stream.ts";
import type { Choice, Chosen } from "./chosen-lines.ts";
import { giveName } from "./out-file.ts";
import type { WholeMessage } from "./whole-messages.ts";

export class ParquetExport {
  readonly #choice: Choice;
  readonly #fromMs: number;
  readonly #toMs: number;
  readonly #records = new SinkRecords();
  #rowBytesMax = 0;

  constructor(choice: Choice) {
    const { from, to } = choice;
    this.#choice = choice;
    this.#fromMs = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
    this.#toMs = to === undefined ? Number.POSITIVE_INFINITY : Date.parse(to);
  }

  choose({ subject, ...message }: WholeMessage, { stream }: StreamName): Chosen {
    const { project } = this.#choice;
    const events: SinkRecord[] = [];
    let unreadable = 0;
    const projectId = isOfManyProjects(subject) ? undefined : project;
    const frame = { ...message, stream, projectId };
    const reading = this.#records.read(frame, {
      record: (record) => {
        const { projectId: owner, origin } = record;
        const { receivedAtMs } = origin;
        if (owner === project && receivedAtMs >= this.#fromMs && receivedAtMs < this.#toMs)
          events.push(record);
      },
      rejected: () => void unreadable++,
    });
    for (const _ of reading);
    const { bytes, rowBytesMax } = rowsOf({ events, rejected: [], incidents: [] }, Date.now());
    this.#rowBytesMax = Math.max(this.#rowBytesMax, rowBytesMax);
    return { bytes, events: events.length, unreadable };
  }

  /** Writes the file. It gets its name when it is complete. Each piece contains whole rows. */
  async write(pieces: AsyncIterable<Buffer>, file: string, isForced: boolean): Promise<void> {
    const folder = await mkdtemp(`${file}.making-`);
    const next = path.join(folder, "next.parquet");
    try {
      const rows = await rowsFiles(pieces, folder);
      const { project: projectId } = this.#choice;
      await withParquetMaker(path.join(folder, "scratch"), (make) =>
        make({ table: "events", rows, rowBytesMax: this.#rowBytesMax, file: next, projectId }),
      );
      await giveName(next, file, isForced);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

async function rowsFiles(pieces: AsyncIterable<Buffer>, folder: string): Promise<string[]> {
  const files: string[] = [];
  let [handle, bytes] = [undefined as FileHandle | undefined, 0];
  try {
    for await (const piece of pieces) {
      if (handle === undefined || bytes >= rowsFileBytes) {
        await handle?.close();
        const file = path.join(folder, `rows-${files.length}`);
        handle = await open(file, "w", 0o600);
        files.push(file);
        bytes = 0;
      }
      await handle.writeFile(piece);
      bytes += piece.length;
    }
  } finally {
    await handle?.close();
  }
  return files;
}
