// HighwayHash with 64 bits (github.com/google/highwayhash), which nats-server uses as the checksum
// of a stream's description. Slow; for a few bytes only.

type Lanes = [bigint, bigint, bigint, bigint];

const mask = 0xffff_ffff_ffff_ffffn;
const low = 0xffff_ffffn;
const init0: Lanes = [
  0xdbe6d5d5fe4cce2fn,
  0xa4093822299f31d0n,
  0x13198a2e03707344n,
  0x243f6a8885a308d3n,
];
const init1: Lanes = [
  0x3bd39e10cb0ef593n,
  0xc0acf169b5f18a8cn,
  0xbe5466cf34e90c6cn,
  0x452821e638d01377n,
];
const packetBytes = 32;
const finalRounds = 4;
const lanes = [0, 1, 2, 3] as const;

interface State {
  readonly v0: Lanes;
  readonly v1: Lanes;
  readonly mul0: Lanes;
  readonly mul1: Lanes;
}

/** Eight bytes in nats-server's order. `key` has 32 bytes. */
export function highwayHash(key: Buffer, data: Buffer): Buffer {
  const keys = lanesOf(key);
  const state: State = {
    v0: lanes.map((lane) => init0[lane] ^ keys[lane]) as Lanes,
    v1: lanes.map((lane) => init1[lane] ^ swapped(keys[lane])) as Lanes,
    mul0: [...init0],
    mul1: [...init1],
  };
  const whole = data.length - (data.length % packetBytes);
  for (let start = 0; start < whole; start += packetBytes)
    update(state, lanesOf(data.subarray(start)));
  if (whole < data.length) updateRest(state, data.subarray(whole));
  for (let round = 0; round < finalRounds; round++) {
    const [a, b, c, d] = state.v0;
    update(state, [swapped(c), swapped(d), swapped(a), swapped(b)]);
  }
  const hash = Buffer.alloc(8);
  hash.writeBigUInt64LE((state.v0[0] + state.v1[0] + state.mul0[0] + state.mul1[0]) & mask);
  return hash;
}

function lanesOf(bytes: Buffer): Lanes {
  return lanes.map((lane) => bytes.readBigUInt64LE(8 * lane)) as Lanes;
}

function swapped(value: bigint): bigint {
  return (value >> 32n) | ((value & low) << 32n);
}

function update({ v0, v1, mul0, mul1 }: State, packet: Lanes): void {
  for (const lane of lanes) {
    v1[lane] = (v1[lane] + mul0[lane] + packet[lane]) & mask;
    mul0[lane] ^= (v1[lane] & low) * (v0[lane] >> 32n);
    v0[lane] = (v0[lane] + mul1[lane]) & mask;
    mul1[lane] ^= (v0[lane] & low) * (v1[lane] >> 32n);
  }
  for (const [from, to] of [
    [v1, v0],
    [v0, v1],
  ] as const) {
    for (const lane of [0, 2] as const) {
      const [even, odd] = zipped(from[lane], from[(lane + 1) as 1 | 3]);
      to[lane] = (to[lane] + even) & mask;
      to[(lane + 1) as 1 | 3] = (to[(lane + 1) as 1 | 3] + odd) & mask;
    }
  }
}

function zipped(even: bigint, odd: bigint): [bigint, bigint] {
  return [
    (((even & 0xff00_0000n) | (odd & 0xff_0000_0000n)) >> 24n) |
      (((even & 0xff00_0000_0000n) | (odd & 0xff_0000_0000_0000n)) >> 16n) |
      (even & 0xff_0000n) |
      ((even & 0xff00n) << 32n) |
      ((odd & 0xff00_0000_0000_0000n) >> 8n) |
      ((even << 56n) & mask),
    (((odd & 0xff00_0000n) | (even & 0xff_0000_0000n)) >> 24n) |
      (odd & 0xff_0000n) |
      ((odd & 0xff00_0000_0000n) >> 16n) |
      ((odd & 0xff00n) << 24n) |
      ((even & 0xff_0000_0000_0000n) >> 8n) |
      ((odd & 0xffn) << 48n) |
      (even & 0xff00_0000_0000_0000n),
  ];
}

function updateRest(state: State, rest: Buffer): void {
  const size = rest.length;
  const fours = size & ~3;
  const ones = size & 3;
  for (const lane of lanes) {
    state.v0[lane] = (state.v0[lane] + ((BigInt(size) << 32n) | BigInt(size))) & mask;
    state.v1[lane] =
      (turned(state.v1[lane] >> 32n, size) << 32n) | turned(state.v1[lane] & low, size);
  }
  const packet = Buffer.alloc(packetBytes);
  rest.copy(packet, 0, 0, fours);
  if (size & 16) rest.copy(packet, 28, size - 4, size);
  else if (ones > 0) {
    packet[16] = rest[fours]!;
    packet[17] = rest[fours + (ones >> 1)]!;
    packet[18] = rest[fours + ones - 1]!;
  }
  update(state, lanesOf(packet));
}

function turned(half: bigint, bits: number): bigint {
  return ((half << BigInt(bits)) | (half >> BigInt(32 - bits))) & low;
}
