// Reads a file or standard input, and decompresses it. Only one chunk is in memory at a time.

import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { CommandError } from "../context.ts";

const chunkBytes = 1_048_576;

interface InputProgress {
  bytesRead: number;
}

type Chunks = AsyncGenerator<Buffer, void, void>;

interface Codec {
  readonly magic: readonly number[];
  readonly instead?: string;
  readonly unpack?: (rest: Chunks) => Chunks;
}

const codecs: readonly Codec[] = [
  { magic: [0x1f, 0x8b], unpack: unpackedGzip },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], unpack: unpackedZstd },
  { magic: [0x50, 0x4b, 0x03, 0x04], instead: "is a zip archive: unzip it, and import its files" },
  { magic: [0x42, 0x5a, 0x68], instead: "is compressed by bzip2: bzcat it into standard input" },
  { magic: [0xfd, 0x37, 0x7a, 0x58], instead: "is compressed by xz: xzcat it into standard input" },
  { magic: [0x50, 0x41, 0x52, 0x31], instead: "is Parquet: export it as JSON lines" },
  { magic: [0xff, 0xfe], instead: "is UTF-16: convert it to UTF-8" },
  { magic: [0xfe, 0xff], instead: "is UTF-16: convert it to UTF-8" },
];

const magicBytesMax = 4;
const noBytes: Buffer = Buffer.alloc(0);

export async function* inputChunks(
  name: string,
  { stdin, progress }: { readonly stdin: () => Readable; readonly progress: InputProgress },
): Chunks {
  const source = name === "-" ? stdin() : createReadStream(name, { highWaterMark: chunkBytes });
  try {
    const raw = counted(source, progress);
    const first = await firstBytes(raw);
    const codec = codecs.find(({ magic }) => magic.every((byte, at) => first[at] === byte));
    if (codec?.instead !== undefined)
      throw new CommandError(`cannot read ${name}: it ${codec.instead}`);
    const rest = continued(first, raw);
    yield* codec?.unpack?.(rest) ?? rest;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`cannot read ${name}: ${readFailure(error as NodeJS.ErrnoException)}`);
  } finally {
    source.destroy();
  }
}

/** Our own texts are used, because the messages of Node repeat the code and the path. */
const readFailures: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
};

function readFailure({ code = "", message }: NodeJS.ErrnoException): string {
  return readFailures[code] ?? message;
}

async function* counted(source: AsyncIterable<unknown>, progress: InputProgress): Chunks {
  for await (const chunk of source) {
    const bytes = chunk as Buffer;
    progress.bytesRead += bytes.length;
    yield bytes;
  }
}

async function firstBytes(raw: Chunks): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < magicBytesMax) {
    const { done, value } = await raw.next();
    if (done === true) break;
    first = first.length === 0 ? value : Buffer.concat([first, value]);
  }
  return first;
}

async function* continued(first: Buffer, raw: Chunks): Chunks {
  if (first.length > 0) yield first;
  yield* raw;
}

/** Node's gunzip stops at zero bytes after a member, so each member needs a new gunzip. */
async function* unpackedGzip(rest: Chunks): Chunks {
  for (let more: Buffer | undefined = noBytes; more !== undefined; ) {
    const gunzip = createGunzip({ chunkSize: chunkBytes });
    const given: Buffer[] = [];
    let bytesDone = 0;
    const source = handedOn(continued(more, rest), (chunk) => {
      given.push(chunk);
      while (given.length > 0 && bytesDone + given[0]!.length <= gunzip.bytesWritten)
        bytesDone += given.shift()!.length;
    });
    yield* unpacked(source, gunzip);
    await source.return();
    const left = Buffer.concat(given).subarray(gunzip.bytesWritten - bytesDone);
    more = await behindZeros(left, rest);
  }
}

async function* handedOn(chunks: Chunks, handed: (chunk: Buffer) => void): Chunks {
  for (;;) {
    const { done, value } = await chunks.next();
    if (done === true) return;
    handed(value);
    yield value;
  }
}

async function behindZeros(first: Buffer, rest: Chunks): Promise<Buffer | undefined> {
  for (let chunk = first; ; ) {
    const at = chunk.findIndex((byte) => byte !== 0);
    if (at >= 0) return chunk.subarray(at);
    const { done, value } = await rest.next();
    if (done === true) return undefined;
    chunk = value;
  }
}

async function* unpackedZstd(rest: Chunks): Chunks {
  const frames = new ZstdFrames();
  const pieces = piecesOf(rest, frames);
  for (;;) {
    const first = await pieces.next();
    if (first.done === true) break;
    const frame = oneFrame(first.value, pieces);
    yield* unpacked(frame, createZstdDecompress({ chunkSize: chunkBytes }));
  }
  if (!frames.isBetween) throw new Error("unexpected end of file");
}

type Pieces = AsyncGenerator<FramePiece, void, void>;

async function* piecesOf(rest: Chunks, frames: ZstdFrames): Pieces {
  for await (const chunk of rest) yield* frames.pieces(chunk);
}

async function* oneFrame(first: FramePiece, pieces: Pieces): Chunks {
  yield first.bytes;
  for (let isEnd = first.isEnd; !isEnd; ) {
    const { done, value } = await pieces.next();
    if (done === true) return;
    yield value.bytes;
    isEnd = value.isEnd;
  }
}

async function* unpacked(rest: Chunks, unpack: NodeJS.ReadWriteStream): Chunks {
  const flowing = pipeline(Readable.from(rest, { objectMode: false }), unpack).catch(() => {});
  for await (const chunk of unpack) yield chunk as Buffer;
  await flowing;
}

const frameMagic = 0xfd2fb528;
const skippableMagic = 0x184d2a50;
const blockHeaderBytes = 3;
const checksumBytes = 4;
const rleBlock = 1;
const contentSizeBytes = [0, 2, 4, 8] as const;
const dictionaryIdBytes = [0, 1, 2, 4] as const;

interface FramePiece {
  readonly bytes: Buffer;
  readonly isEnd: boolean;
}

/**
 * Splits zstd data into frames (RFC 8878). This is needed because Node 22 decompresses only the
 * first frame, and does not report a truncated frame.
 */
export class ZstdFrames {
  #header: number[] = [];
  #isInBlocks = false;
  #hasChecksum = false;
  #left = 0;
  #isLastBlock = false;
  #isSkippable = false;

  get isBetween(): boolean {
    return !this.#isInBlocks && this.#left === 0 && this.#header.length === 0;
  }

  *pieces(chunk: Buffer): Generator<FramePiece, void, void> {
    let from = 0;
    for (let at = 0; at < chunk.length; ) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, chunk.length - at);
        this.#left -= passed;
        at += passed;
      } else {
        this.#header.push(chunk[at]!);
        at++;
        if (this.#isInBlocks) this.#readBlockHeader();
        else {
          from = at;
          const header = this.#readFrameHeader();
          if (header !== undefined) yield { bytes: header, isEnd: false };
        }
      }
      if (!this.#isLastBlock || this.#left > 0) continue;
      const bytes = chunk.subarray(from, at);
      from = at;
      if (!this.#isSkippable) yield { bytes, isEnd: true };
      this.#isInBlocks = false;
      this.#isLastBlock = false;
      this.#isSkippable = false;
    }
    if (from < chunk.length && !this.#isSkippable)
      yield { bytes: chunk.subarray(from), isEnd: false };
  }

  #readFrameHeader(): Buffer | undefined {
    const header = this.#header;
    if (header.length < 5) return undefined;
    const magic = littleEndian(header, 0);
    if (magic >= skippableMagic && magic < skippableMagic + 16) {
      if (header.length < 8) return undefined;
      this.#isSkippable = true;
      this.#isLastBlock = true;
      this.#left = littleEndian(header, 4);
      this.#header = [];
      return undefined;
    }
    if (magic !== frameMagic) throw new Error("incorrect header check");
    const descriptor = header[4]!;
    const isSingleSegment = (descriptor & 0x20) !== 0;
    const sizeFlag = (descriptor >> 6) as 0 | 1 | 2 | 3;
    const sizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : contentSizeBytes[sizeFlag];
    const idBytes = dictionaryIdBytes[(descriptor & 0x03) as 0 | 1 | 2 | 3];
    if (header.length < 5 + (isSingleSegment ? 0 : 1) + idBytes + sizeBytes) return undefined;
    this.#hasChecksum = (descriptor & 0x04) !== 0;
    this.#isInBlocks = true;
    this.#header = [];
    return Buffer.from(header);
  }

  #readBlockHeader(): void {
    if (this.#header.length < blockHeaderBytes) return;
    const [low, middle, high] = this.#header as [number, number, number];
    const header = low | (middle << 8) | (high << 16);
    this.#header = [];
    this.#isLastBlock = (header & 1) === 1;
    this.#left = ((header >> 1) & 0x03) === rleBlock ? 1 : header >> 3;
    if (this.#isLastBlock && this.#hasChecksum) this.#left += checksumBytes;
  }
}

function littleEndian(bytes: readonly number[], at: number): number {
  return (
    (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
  );
}
