// Events as PostgreSQL's binary COPY format has them: nothing need be escaped, and properties go
// from the frame to the server as they are.

import { Buffer } from "node:buffer";
import type { SinkRecord } from "../sink-target.ts";
import { eventColumns } from "./tables.ts";

const signature = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
/** Milliseconds from 1970 to 2000, from where PostgreSQL counts. */
const epochMs = 946_684_800_000;
const microsPerMs = 1_000;
const jsonbVersion = 1;
/** What the fields of an event take beside its texts, at most; the person's comes last. */
const fixedBytes = 2 + 4 * eventColumns.length + 16 + 5 * 8 + 2 + 4 + (4 + 16);
/** A character of a string takes at most so many bytes. */
const characterBytesMax = 3;
const chunkBytes = 262_144;

/** The parts of one stream of data, each some hundred KiB or one event. */
export function* copyChunks(
  records: Iterable<SinkRecord>,
  { withPerson }: { readonly withPerson: boolean },
): Generator<Buffer> {
  const columns = eventColumns.length + Number(withPerson);
  let chunk = new CopyChunk(chunkBytes);
  chunk.bytes(signature);
  for (const record of records) {
    const bytes = bytesMaxOf(record);
    if (chunk.room < bytes) {
      yield chunk.taken();
      chunk = new CopyChunk(Math.max(chunkBytes, bytes));
    }
    chunk.event(record, columns);
    if (withPerson) chunk.person(record);
  }
  if (chunk.room < 2) {
    yield chunk.taken();
    chunk = new CopyChunk(2);
  }
  chunk.end();
  yield chunk.taken();
}

function bytesMaxOf(record: SinkRecord): number {
  const { projectId, event, distinctId, ip, kind, properties, set, setOnce, unset } = record;
  const characters = projectId.length + event.length + distinctId.length + ip.length + kind.length;
  const json =
    properties.length + (set?.length ?? 0) + (setOnce?.length ?? 0) + (unset?.length ?? 0);
  return fixedBytes + characterBytesMax * characters + json;
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

  /** `columns`: how many the row has. */
  event(record: SinkRecord, columns: number): void {
    this.#at = this.#buffer.writeInt16BE(columns, this.#at);
    this.#text(record.projectId);
    this.#uuid(record.uuid);
    this.#text(record.event);
    this.#text(record.distinctId);
    this.#time(record.timestampMs);
    this.#time(record.receivedAtMs);
    this.#time(record.storedAtMs);
    this.#time(record.timestampSentMs);
    this.#time(record.sentAtMs);
    if (record.ip === "") this.#null();
    else this.#text(record.ip);
    this.#text(record.kind);
    this.#boolean(record.personProfile);
    this.#boolean(record.historical);
    this.#json(record.properties);
    this.#json(record.set);
    this.#json(record.setOnce);
    this.#json(record.unset);
  }

  person({ personUuid }: SinkRecord): void {
    if (personUuid === "") this.#null();
    else this.#uuid(personUuid);
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
      // In two halves: a BigInt for each would take longer.
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
