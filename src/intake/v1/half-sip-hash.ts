// HalfSipHash-1-3 (Aumasson and Bernstein): a hash for tables whose keys strangers choose. Linux
// has it for that purpose on machines of 32 bits. Nobody who lacks its key can choose texts that
// collide more often than random ones. It takes 32-bit operations alone, so it needs no BigInt.

/** Rounds after the last word; there is one for each word. */
const finalRounds = 3;

/**
 * The hash of words[start, start + count), read as little-endian bytes: a signed 32-bit number.
 * `key`: two random words.
 */
export function halfSipHash(
  key: Uint32Array,
  words: Uint32Array,
  { start, count }: { readonly start: number; readonly count: number },
): number {
  const [key0, key1] = [key[0]! | 0, key[1]! | 0];
  let v0 = key0;
  let v1 = key1;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  for (let round = 0; round <= count + finalRounds; round++) {
    // After the words comes one that tells their bytes, and nothing after that.
    const word = round < count ? words[start + round]! : round === count ? count << 26 : 0;
    if (round === count + 1) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}
