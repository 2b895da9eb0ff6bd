import { appendFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fileSegment } from "../../../../src/readers/sinks/parquet/filing.ts";
import { rowsOf } from "../../../../src/readers/sinks/parquet/rows.ts";
import { filesOf, Segment } from "../../../../src/readers/sinks/parquet/segment.ts";
import { newFolder } from "./parquet-kit.ts";

test("files a segment of more batches than a call takes arguments", async () => {
  const folder = newFolder();
  const files = filesOf(folder, 1);
  const segment = await Segment.begin(files, { number: 1, positions: [], incidents: [] });
  const incident = { stream: "S", epoch: 1, sequence: 1, kind: "gap", messages: 1, detail: "d" };
  const rows = rowsOf({ events: [], rejected: [], incidents: [incident] as never }, 0);
  await segment.append({ ...rows, positions: [], incidents: [] }, 0);
  await segment.close();
  const rowsEnd = rows.bytes.length;
  const entry = { atMs: 0, rowsEnd, rowBytesMax: 0, runs: [], positions: [], incidents: [] };
  appendFileSync(files.journal, `${JSON.stringify(entry)}\n`.repeat(200_000));
  expect(await fileSegment({ folder, id: "test", segment: 1 })).toEqual({ files: 1, rows: 1 });
});
