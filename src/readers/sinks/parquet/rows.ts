// Writes events and rejected lines as rows of a segment, grouped by folder of the target. The rows
// of a batch are one buffer, which is written at once.

import { Buffer } from "node:buffer";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import type { RejectedLine, SinkRecord } from "../sink-records.ts";
import type { SinkBatch, SinkIncident } from "../sink-target.ts";
import {
  fieldOf,
  jsonColumns,
  type PlainColumn,
  plainColumns,
  separator,
  type TableName,
} from "./columns.ts";

export interface Run {
  /** Such as `events/project_id=shop/day=2026-11-23`. */
  readonly folder: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface BatchRows {
  readonly bytes: Buffer;
  /** Runs in their order in the buffer. */
  readonly runs: readonly Run[];
  /** Length in bytes of the longest row. */
  readonly rowBytesMax: number;
}

const bytesAtFirst = 1_048_576;
/** Approximate size of a file of rows. DuckDB reads 2,048 rows at once, however long they are. */
export const rowsFileBytes = 16_777_216;
/** Maximum number of bytes of a UTF-16 code unit in UTF-8. */
const characterBytesMax = 3;
const carriageReturn = 0x0d;
const space = 0x20;
const lineFeed = 0x0a;
const separatorByte = separator.charCodeAt(0);

export function rowsOf(
  { events, rejected, incidents }: Pick<SinkBatch, "events" | "rejected" | "incidents">,
  nowMs: number,
): BatchRows {
  const writer = new RowWriter();
  for (const [folder, some] of inFolders(events, eventFolders()))
    writer.run(folder, some, (event) => writer.event(event));
  const asideIn = ({ storedAtMs }: RejectedLine) => folderOf("rejected", storedAtMs);
  for (const [folder, some] of inFolders(rejected, asideIn))
    writer.run(folder, some, (line) => writer.text(rejectedRow(line)));
  writer.run(folderOf("incidents", nowMs), incidents, (incident) =>
    writer.text(incidentRow(incident, nowMs)),
  );
  return writer.take();
}

export function tableOf(folder: string): TableName {
  return folder.slice(0, folder.indexOf("/")) as TableName;
}

function inFolders<Row>(
  rows: readonly Row[],
  folder: (row: Row) => string,
): ReadonlyMap<string, readonly Row[]> {
  const folders = new Map<string, Row[]>();
  let last: { name: string; rows: Row[] } | undefined;
  for (const row of rows) {
    const name = folder(row);
    if (last?.name !== name) {
      const known = folders.get(name);
      last = { name, rows: known ?? [] };
      if (known === undefined) folders.set(name, last.rows);
    }
    last.rows.push(row);
  }
  return folders;
}

/** Consecutive events often have the same folder, so the last one is cached. */
function eventFolders(): (event: SinkRecord) => string {
  let last = { projectId: "", day: Number.NaN, name: "" };
  return ({ projectId, storedAtMs }) => {
    const day = Math.floor(storedAtMs / dayMs);
    if (last.projectId !== projectId || last.day !== day) {
      const name = folderOf(`events/project_id=${projectId}`, storedAtMs);
      last = { projectId, day, name };
    }
    return last.name;
  };
}

function folderOf(table: string, ms: number): string {
  return `${table}/day=${dayOf(ms)}`;
}

class RowWriter {
  #buffer = Buffer.allocUnsafe(bytesAtFirst);
  #at = 0;
  #rowBytesMax = 0;
  readonly #runs: Run[] = [];

  run<Row>(folder: string, rows: readonly Row[], write: (row: Row) => void): void {
    let run = { from: this.#at, rows: 0 };
    for (const row of rows) {
      const start = this.#at;
      write(row);
      run.rows++;
      this.#rowBytesMax = Math.max(this.#rowBytesMax, this.#at - start);
      if (this.#at - run.from < rowsFileBytes) continue;
      this.#end(folder, run);
      run = { from: this.#at, rows: 0 };
    }
    if (run.rows > 0) this.#end(folder, run);
  }

  #end(folder: string, { from, rows }: { readonly from: number; readonly rows: number }): void {
    this.#runs.push({ folder, bytes: this.#at - from, rows });
  }

  take(): BatchRows {
    const bytes = this.#buffer.subarray(0, this.#at);
    // All remaining carriage returns are white space in JSON.
    for (let at = bytes.indexOf(carriageReturn); at >= 0; at = bytes.indexOf(carriageReturn, at))
      bytes[at] = space;
    return { bytes, runs: this.#runs, rowBytesMax: this.#rowBytesMax };
  }

  event(event: SinkRecord): void {
    let head = "";
    for (const column of plainColumns) head += fieldIn(event, column) + separator;
    let jsonBytes = 0;
    for (const { of } of jsonColumns) jsonBytes += of(event)?.length ?? 0;
    this.#require(characterBytesMax * head.length + jsonBytes + jsonColumns.length);
    this.#at += this.#buffer.write(head, this.#at, "utf8");
    for (const { of } of jsonColumns) this.#json(of(event));
    this.#buffer[this.#at - 1] = lineFeed;
  }

  text(row: string): void {
    this.#require(characterBytesMax * row.length);
    this.#at += this.#buffer.write(row, this.#at, "utf8");
  }

  #json(json: Uint8Array | undefined): void {
    if (json !== undefined) {
      this.#buffer.set(json, this.#at);
      this.#at += json.length;
    }
    this.#buffer[this.#at++] = separatorByte;
  }

  #require(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

function fieldIn(event: SinkRecord, { type, isOptional, of }: PlainColumn): string {
  if (type === "boolean") return of(event) ? "1" : "0";
  if (type === "time") {
    const ms = of(event);
    return Number.isNaN(ms) ? "" : String(ms);
  }
  const text = of(event);
  return type !== "text" || (isOptional && text === "") ? text : fieldOf(text);
}

function rejectedRow(line: RejectedLine): string {
  const { stream, sequence, line: index, storedAtMs, projectId, reason, detail, text } = line;
  const record = Buffer.from(text.buffer, text.byteOffset, text.length).toString("utf8");
  return rowOf([
    ...[fieldOf(stream), String(sequence), String(index), String(storedAtMs)],
    ...[projectId, reason, detail, record].map(fieldOf),
  ]);
}

function incidentRow(incident: SinkIncident, nowMs: number): string {
  const { stream, epoch, sequence, kind, messages, detail } = incident;
  const numbers = [String(epoch), String(sequence)];
  return rowOf([
    ...[String(nowMs), fieldOf(stream), ...numbers, fieldOf(kind), String(messages)],
    fieldOf(detail),
  ]);
}

function rowOf(fields: readonly string[]): string {
  return `${fields.join(separator)}\n`;
}
