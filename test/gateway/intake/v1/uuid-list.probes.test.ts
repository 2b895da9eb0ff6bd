import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { expect, test } from "vitest";
import { UuidList } from "../../../../src/gateway/intake/v1/uuids.ts";

const uuids = 16_000;

type Words = readonly [number, number, number, number];

const bitFlips = allBitFlips();
const chosen: Record<string, (index: number) => Words> = {
  "the four top bits of each word": (n) => [
    n << 28,
    (n >> 4) << 28,
    (n >> 8) << 28,
    (n >> 12) << 28,
  ],
  "the eight top bits of two words": (n) => [n << 24, 0, (n >> 8) << 24, 0],
  "the top half of one word": (n) => [0, 0, 0, n << 16],
  "the four low bits of each word": (n) => [n & 15, (n >> 4) & 15, (n >> 8) & 15, (n >> 12) & 15],
  "the top and the low byte of one word": (n) => [0, (n << 24) | ((n >> 8) & 0xff), 0, 0],
  "a counter in the first word": (n) => [n, 0, 0, 0],
  "a counter in the second word": (n) => [0, n, 0, 0],
  "a counter in the third word": (n) => [0, 0, n, 0],
  "a counter in the last word": (n) => [0, 0, 0, n],
  "a counter in every word": (n) => [n, n, n, n],
  "words that cancel each other in a sum": (n) => [n, -n, n, -n],
  "words that cancel each other in an exclusive or": (n) => [n << 15, n << 15, ~n, ~n],
  "steps of 65,537": (n) => [1, Math.imul(n, 65_537), 2, 3],
  "steps of the golden ratio": (n) => [Math.imul(n, 0x9e3779b1), 0, 0, 0],
  "steps of the golden ratio in each word": (n) => words(Math.imul(n, 0x9e3779b1)),
  "one to three bits flipped": (n) => bitFlips[n] ?? expect.unreachable("too few"),
  "timestamps that count up, with equal other bits": (n) => [
    0x019aa000,
    (n << 16) | 0x7000,
    8 << 28,
    0,
  ],
};

const probesOfRandom = Math.max(...[1, 2, 3].map(() => probesOf(randomWords)));

test.each(Object.entries(chosen))(
  "a look-up takes equally long for uuids chosen by an attacker: %s",
  (_name, wordsOf) => {
    expect(probesOf(wordsOf) / probesOfRandom).toBeLessThan(1.1);
  },
);

function probesOf(wordsOf: (index: number) => Words): number {
  const list = new UuidList(uuids);
  const text = Buffer.alloc(36);
  for (let index = 0; index < uuids; index++) {
    text.write(textOf(wordsOf(index)), "latin1");
    list.add(text, 0);
  }
  expect(list.length).toBe(uuids);
  return list.probes;
}

function textOf(given: Words): string {
  const hex = given.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function randomWords(): Words {
  const [a = 0, b = 0, c = 0, d = 0] = randomFillSync(new Uint32Array(4));
  return [a, b, c, d];
}

function words(word: number): Words {
  return [word, word, word, word];
}

function allBitFlips(): Words[] {
  const flips: Words[] = [];
  for (let one = 0; one < 128; one++) {
    for (let two = one; two < 128; two++) {
      for (let three = two; three < 128 && flips.length < uuids; three++) {
        const set = new Set([one, two, three]);
        if (two === one && three !== two) continue;
        const flipped = new Uint32Array([0x12345678, 0x9abc4def, 0x8123cafe, 0x55aa00ff]);
        for (const bit of set) flipped[bit >> 5]! ^= 1 << (bit & 31);
        const [a = 0, b = 0, c = 0, d = 0] = flipped;
        flips.push([a, b, c, d]);
      }
    }
  }
  return flips;
}
