// Finds the end of each Zstandard frame (RFC 8878). Node 22 decompresses only the first frame, and
// silently accepts a truncated frame, so each frame gets its own decompressor.

const frameMagic = 0xfd2fb528;
/** The first of the 16 magic numbers of skippable frames. */
const skippableMagic = 0x184d2a50;
const blockHeaderBytes = 3;
const checksumBytes = 4;
const rleBlock = 1;
const contentSizeBytes = [0, 2, 4, 8] as const;
const dictionaryIdBytes = [0, 1, 2, 4] as const;

export interface FramePiece {
  readonly bytes: Buffer;
  readonly isEnd: boolean;
}

export class ZstdFrames {
  /** The bytes read so far of the header of a frame or of a block. */
  #header: number[] = [];
  #isInBlocks = false;
  #hasChecksum = false;
  #left = 0;
  #isLastBlock = false;
  #isSkippable = false;

  get isBetween(): boolean {
    return !this.#isInBlocks && this.#left === 0 && this.#header.length === 0;
  }

  /** Throws if the bytes are not a frame. */
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
          // Held until it is known whether the frame must be skipped.
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
