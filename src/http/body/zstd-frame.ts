// Checks that bytes are exactly one whole Zstandard frame (RFC 8878), by its block headers alone.
// Node 22 inflates a frame that is cut short, or the first of two, and says nothing; a body is
// whole or it is refused.

const MAGIC = 0xfd2fb528;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;

/**
 * RFC 9659: over HTTP, a zstd window is at most 8 MiB. Without this limit a few bytes make the
 * decoder ask for 128 MiB.
 */
export const ZSTD_WINDOW_LOG_MAX = 23;
const ZSTD_WINDOW_BYTES_MAX = 2 ** ZSTD_WINDOW_LOG_MAX;

const contentSizeBytes = [0, 2, 4, 8];
const dictionaryIdBytes = [0, 1, 2, 4];

/** Says what is wrong with the frame; undefined for one that is whole. */
export function zstdFrameFault(body: Uint8Array): string | undefined {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  if (body.length < 6) return "unexpected end of data";
  if (view.getUint32(0, true) !== MAGIC) return "incorrect header check";
  const descriptor = body[4]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const sizeBytes =
    contentSizeBytes[descriptor >> 6]! + (descriptor >> 6 === 0 && singleSegment ? 1 : 0);
  let at = 5 + (singleSegment ? 0 : 1) + dictionaryIdBytes[descriptor & 0x03]! + sizeBytes;
  for (;;) {
    if (at + BLOCK_HEADER_BYTES > body.length) return "unexpected end of data";
    const header = body[at]! | (body[at + 1]! << 8) | (body[at + 2]! << 16);
    const type = (header >> 1) & 0x03;
    if (type === RESERVED_BLOCK) return "invalid block type";
    at += BLOCK_HEADER_BYTES + (type === RLE_BLOCK ? 1 : header >> 3);
    if ((header & 1) === 1) break;
  }
  if ((descriptor & 0x04) !== 0) at += CHECKSUM_BYTES;
  if (at > body.length) return "unexpected end of data";
  return at < body.length ? "more data after the end" : undefined;
}

/**
 * Returns the window that a frame asks for, at most the largest that a decoder may have. That
 * largest one, too, for a single segment and for bytes too short to tell. RFC 8878, 3.1.1.1.2.
 */
export function zstdWindowBytes(body: Uint8Array): number {
  const descriptor = body[4] ?? 0;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const window = body[5] ?? 0xff;
  if (isSingleSegment) return ZSTD_WINDOW_BYTES_MAX;
  const base = 2 ** (10 + (window >> 3));
  return Math.min(base + (base / 8) * (window & 7), ZSTD_WINDOW_BYTES_MAX);
}
