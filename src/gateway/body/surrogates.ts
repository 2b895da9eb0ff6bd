// Converts text in which each UTF-16 unit was written by itself to UTF-8. A pair of surrogates
// becomes one character of four bytes; a single surrogate becomes U+FFFD.

/** Bytes read per step, which takes some tenths of a millisecond. */
const STEP_BYTES = 131_072;
/**
 * The first byte of every surrogate. In other characters the byte after `LEAD` is below 0xa0. In a
 * high surrogate that byte is below `LOW_FIRST`, in a low one it is not.
 */
const LEAD = 0xed;
const HIGH_FIRST = 0xa0;
const LOW_FIRST = 0xb0;

/**
 * Converts a piece in place, starting at `joined`. Returns true when the whole text is converted:
 * the result is then the first `joined.written` bytes.
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
