// PostgreSQL's binary COPY format, and COPY … FROM STDIN, which the library pg does not support.

import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { Client, Connection, Submittable } from "pg";
import type { EventColumn, SinkRecord } from "../sink-records.ts";

const signature = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const epochMs = 946_684_800_000;
const microsPerMs = 1_000;
const jsonbVersion = 1;
const columnBytesMax = 4 + 16;
const characterBytesMax = 3;
const chunkBytes = 262_144;

/** Yields chunks of 256 KiB. An event that is larger has its own chunk. */
export function* copyChunks(
  records: Iterable<SinkRecord>,
  columns: readonly EventColumn[],
): Generator<Buffer> {
  let chunk = new CopyChunk(chunkBytes);
  chunk.bytes(signature);
  for (const record of records) {
    const bytes = bytesMaxOf(columns, record);
    if (chunk.room < bytes) {
      yield chunk.taken();
      chunk = new CopyChunk(Math.max(chunkBytes, bytes));
    }
    chunk.event(record, columns);
  }
  if (chunk.room < 2) {
    yield chunk.taken();
    chunk = new CopyChunk(2);
  }
  chunk.end();
  yield chunk.taken();
}

function bytesMaxOf(columns: readonly EventColumn[], record: SinkRecord): number {
  let bytes = 2 + columns.length * columnBytesMax;
  for (const { type, of } of columns) {
    if (type === "text" || type === "id") bytes += characterBytesMax * of(record).length;
    else if (type === "object" || type === "names") bytes += of(record)?.length ?? 0;
  }
  return bytes;
}

class CopyChunk {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(bytes);
  }

  get room(): number {
    return this.#buffer.length - this.#at;
  }

  taken(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  bytes(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  end(): void {
    this.#at = this.#buffer.writeInt16BE(-1, this.#at);
  }

  event(record: SinkRecord, columns: readonly EventColumn[]): void {
    this.#at = this.#buffer.writeInt16BE(columns.length, this.#at);
    for (const column of columns) this.#value(record, column);
  }

  #value(record: SinkRecord, { type, isOptional, of }: EventColumn): void {
    if (type === "time") this.#time(of(record));
    else if (type === "boolean") this.#boolean(of(record));
    else if (type === "object" || type === "names") this.#json(of(record));
    else {
      const text = of(record);
      if (isOptional && text === "") this.#null();
      else if (type === "uuid") this.#uuid(text);
      else this.#text(text);
    }
  }

  #length(bytes: number): void {
    this.#at = this.#buffer.writeInt32BE(bytes, this.#at);
  }

  #null(): void {
    this.#length(-1);
  }

  #text(text: string): void {
    const bytes = this.#buffer.write(text, this.#at + 4, "utf8");
    this.#length(bytes);
    this.#at += bytes;
  }

  #uuid(uuid: string): void {
    this.#length(16);
    this.#at += this.#buffer.write(uuid.replaceAll("-", ""), this.#at, "hex");
  }

  #time(ms: number): void {
    if (Number.isNaN(ms)) {
      this.#null();
      return;
    }
    this.#length(8);
    const micros = (ms - epochMs) * microsPerMs;
    if (Number.isSafeInteger(micros)) {
      const high = Math.floor(micros / 2 ** 32);
      this.#at = this.#buffer.writeInt32BE(high, this.#at);
      this.#at = this.#buffer.writeUInt32BE(micros - high * 2 ** 32, this.#at);
    } else {
      const exact = BigInt(ms - epochMs) * BigInt(microsPerMs);
      this.#at = this.#buffer.writeBigInt64BE(exact, this.#at);
    }
  }

  #boolean(value: boolean): void {
    this.#length(1);
    this.#at = this.#buffer.writeUInt8(Number(value), this.#at);
  }

  #json(json: Uint8Array | undefined): void {
    if (json === undefined) {
      this.#null();
      return;
    }
    this.#length(json.length + 1);
    this.#at = this.#buffer.writeUInt8(jsonbVersion, this.#at);
    this.bytes(json);
  }
}

interface CopyConnection extends Connection {
  readonly stream: Socket;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/** Runs a COPY statement. Rejects with the error of the server or of the connection. */
export async function copyIn(client: Client, sql: string, chunks: Iterable<Buffer>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    client.query(
      new CopyIn(sql, chunks, (error) => {
        if (error === undefined || error === null) resolve();
        else reject(error);
      }),
    );
  });
}

type Done = (error?: Error | null) => void;

class CopyIn implements Submittable {
  readonly #sql: string;
  readonly #chunks: Iterable<Buffer>;
  #hasEnded = false;
  callback: Done;

  constructor(sql: string, chunks: Iterable<Buffer>, done: Done) {
    this.#sql = sql;
    this.#chunks = chunks;
    this.callback = done;
  }

  submit(connection: Connection): void {
    (connection as CopyConnection).query(this.#sql);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    void this.#send(connection);
  }

  handleCommandComplete(): void {
    this.#hasEnded = true;
  }

  handleError(error: Error): void {
    this.#hasEnded = true;
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback();
  }

  async #send(connection: CopyConnection): Promise<void> {
    const { stream } = connection;
    try {
      for (const chunk of this.#chunks) {
        if (this.#hasEnded) return;
        connection.sendCopyFromChunk(chunk);
        if (stream.writableNeedDrain) await drained(stream);
      }
      connection.endCopyFrom();
    } catch (error) {
      connection.sendCopyFail((error as Error).message);
    }
  }
}

function drained(stream: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off("drain", go);
      stream.off("close", go);
      resolve();
    };
    stream.on("drain", go);
    stream.on("close", go);
    if (stream.destroyed) go();
  });
}
