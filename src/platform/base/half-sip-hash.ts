// HalfSipHash-1-3 (Aumasson and Bernstein), a hash with a key, for texts that clients choose. A
// client that does not know the key cannot find texts with the same hash.

const finalRounds = 3;

interface Words {
  readonly start: number;
  readonly count: number;
}

export function halfSipHash(key: Uint32Array, words: Uint32Array, place: Words): number {
  return hashed(key, words, place, undefined);
}

/** Writes a 64-bit hash of all words to `into`. Neither half is the same as the 32-bit hash. */
export function halfSipHash64(key: Uint32Array, words: Uint32Array, into: Int32Array): void {
  into[1] = hashed(key, words, { start: 0, count: words.length }, into);
}

function hashed(
  key: Uint32Array,
  words: Uint32Array,
  { start, count }: Words,
  into: Int32Array | undefined,
): number {
  const [key0, key1] = [key[0]! | 0, key[1]! | 0];
  let v0 = key0;
  let v1 = into === undefined ? key1 : key1 ^ 0xee;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  const firstEnd = count + 1 + finalRounds;
  const end = into === undefined ? firstEnd : firstEnd + finalRounds;
  for (let round = 0; round < end; round++) {
    const word = round < count ? words[start + round]! : round === count ? count << 26 : 0;
    if (round === count + 1) v2 ^= into === undefined ? 0xff : 0xee;
    if (round === firstEnd && into !== undefined) {
      into[0] = v1 ^ v3;
      v1 ^= 0xdd;
    }
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
