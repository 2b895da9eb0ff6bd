// SipHash-2-4 with 128 bits of output (https://github.com/veorq/SipHash). Node's crypto has no
// SipHash. A word of 64 bits is two halves, because BigInt takes ten times as long.

import { Buffer } from "node:buffer";

const sipKeyBytes = 16;
export const sipHashBytes = 16;

/** The state: v0 to v3, each as its low and high half. */
const v = new Int32Array(8);
const V0 = 0;
const V1 = 2;
const V2 = 4;
const V3 = 6;
/** `somepseudorandomlygeneratedbytes`, the initial state. */
const initial = [
  0x70736575, 0x736f6d65, 0x6e646f6d, 0x646f7261, 0x6e657261, 0x6c796765, 0x79746573, 0x74656462,
] as const;
const blockBytes = 8;

/** Returns the 16 bytes of the hash. The key has 16 bytes; further bytes are ignored. */
export function sipHash128(key: Uint8Array, message: Uint8Array): Buffer {
  const keyView = new DataView(key.buffer, key.byteOffset, sipKeyBytes);
  for (let half = 0; half < v.length; half++)
    v[half] = initial[half]! ^ keyView.getInt32(4 * (half & 3), true);
  v[V1] = v[V1]! ^ 0xee;
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  const wholeEnd = message.length - (message.length % blockBytes);
  for (let at = 0; at < wholeEnd; at += blockBytes)
    takeBlock(view.getInt32(at, true), view.getInt32(at + 4, true));
  const last = Buffer.alloc(blockBytes);
  last.set(message.subarray(wholeEnd));
  last[blockBytes - 1] = message.length;
  takeBlock(last.readInt32LE(0), last.readInt32LE(4));
  const hash = Buffer.allocUnsafe(sipHashBytes);
  v[V2] = v[V2]! ^ 0xee;
  writeWord(hash, 0);
  v[V1] = v[V1]! ^ 0xdd;
  writeWord(hash, blockBytes);
  return hash;
}

function takeBlock(low: number, high: number): void {
  v[V3] = v[V3]! ^ low;
  v[V3 + 1] = v[V3 + 1]! ^ high;
  rounds(2);
  v[V0] = v[V0]! ^ low;
  v[V0 + 1] = v[V0 + 1]! ^ high;
}

function writeWord(hash: Buffer, at: number): void {
  rounds(4);
  for (const half of [0, 1])
    hash.writeInt32LE(v[V0 + half]! ^ v[V1 + half]! ^ v[V2 + half]! ^ v[V3 + half]!, at + 4 * half);
}

function rounds(count: number): void {
  for (let round = 0; round < count; round++) {
    add(V0, V1);
    rotateAndXor(V1, 13, V0);
    swapHalves(V0);
    add(V2, V3);
    rotateAndXor(V3, 16, V2);
    add(V0, V3);
    rotateAndXor(V3, 21, V0);
    add(V2, V1);
    rotateAndXor(V1, 17, V2);
    swapHalves(V2);
  }
}

function add(to: number, other: number): void {
  const low = (v[to]! >>> 0) + (v[other]! >>> 0);
  v[to] = low;
  v[to + 1] = v[to + 1]! + v[other + 1]! + (low > 0xffff_ffff ? 1 : 0);
}

function rotateAndXor(word: number, bits: number, other: number): void {
  const [low, high] = [v[word]!, v[word + 1]!];
  v[word] = ((low << bits) | (high >>> (32 - bits))) ^ v[other]!;
  v[word + 1] = ((high << bits) | (low >>> (32 - bits))) ^ v[other + 1]!;
}

function swapHalves(word: number): void {
  const low = v[word]!;
  v[word] = v[word + 1]!;
  v[word + 1] = low;
}
