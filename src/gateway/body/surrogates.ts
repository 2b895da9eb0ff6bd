/** Bytes read per step, which takes some tenths of a millisecond. */
const STEP_BYTES = 131_072;
/**
 * The first byte of every surrogate. Its second byte is from `HIGH_FIRST` or, in a low surrogate,
 * `LOW_FIRST` on; in other characters it is lower.
 */
const LEAD = 0xed;
const HIGH_FIRST = 0xa0;
const LOW_FIRST = 0xb0;

/**
 * Converts a piece in place, starting at `joined`. Returns true at the end of the text: the result
 * is the first `joined.written` bytes.
 */
export function joinSurrogates(bytes: Buffer, joined: { read: number; written: number }): boolean {
  let { read, written } = joined;
  const end = Math.min(bytes.length, read + STEP_BYTES);
  while (read < end) {
    const byte = bytes[read]!;
    const second = byte === LEAD ? bytes[read + 1]! : 0;
    if (second < HIGH_FIRST) {
      bytes[written++] = byte;
      read++;
    } else if (second < LOW_FIRST && bytes[read + 3] === LEAD && bytes[read + 4]! >= LOW_FIRST) {
      const high = ((second & 0x0f) << 6) | (bytes[read + 2]! & 0x3f);
      const low = ((bytes[read + 4]! & 0x0f) << 6) | (bytes[read + 5]! & 0x3f);
      const point = 0x10000 + (high << 10) + low;
      bytes[written++] = 0xf0 | (point >> 18);
      bytes[written++] = 0x80 | ((point >> 12) & 0x3f);
      bytes[written++] = 0x80 | ((point >> 6) & 0x3f);
      bytes[written++] = 0x80 | (point & 0x3f);
      read += 6;
    } else {
      bytes[written++] = 0xef;
      bytes[written++] = 0xbf;
      bytes[written++] = 0xbd;
      read += 3;
    }
  }
  joined.read = read;
  joined.written = written;
  return read >= bytes.length;
}
