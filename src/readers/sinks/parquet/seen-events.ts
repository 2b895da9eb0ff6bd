// Recently written events, in two generations of a fixed size. When the newer one is full, the
// older one is dropped. A key is the uuid and 64 bits of a hash of project, name and distinct id. A
// Set of digests takes three times as long.

import type { SinkRecord } from "../sink-records.ts";

/** Events of a generation, which takes 32 MiB: 24 of keys, and 8 of slots, half of them free. */
const eventsMax = 2 ** 20;
/** Number of words of a key: four of the uuid, two of the hash. */
const words = 6;
/** Mask of a slot for the number of its key, from 1. The other bits are from the key's hash. */
const numberMask = 2 ** 21 - 1;

export class SeenEvents {
  #newer = new Generation();
  #older = new Generation();
  readonly #key = new Int32Array(words);

  /** Adds an event. Returns false if it was added before. */
  add(event: Pick<SinkRecord, "uuid" | "projectId" | "event" | "distinctId">): boolean {
    const key = this.#key;
    readUuid(event.uuid, key);
    key[4] = textsHash(seeds[4]!, event);
    key[5] = textsHash(seeds[5]!, event);
    const hash = hashOf(key);
    if (this.#older.has(hash, key) || !this.#newer.add(hash, key)) return false;
    if (!this.#newer.isFull) return true;
    this.#older = this.#newer;
    this.#newer = new Generation();
    return true;
  }

  forget(): void {
    this.#newer = new Generation();
    this.#older = new Generation();
  }
}

/** A generation: keys in insertion order, and slots with bits of their hashes. */
class Generation {
  readonly #keys = new Int32Array(words * eventsMax);
  /** Number of the key in each slot, with bits of its hash; 0 if the slot is free. */
  readonly #slots = new Int32Array(2 * eventsMax);
  #size = 0;

  get isFull(): boolean {
    return this.#size === eventsMax;
  }

  has(hash: number, key: Int32Array): boolean {
    return this.#slots[this.#slotOf(hash, key)] !== 0;
  }

  add(hash: number, key: Int32Array): boolean {
    const slot = this.#slotOf(hash, key);
    if (this.#slots[slot] !== 0) return false;
    this.#keys.set(key, words * this.#size);
    this.#slots[slot] = (hash & ~numberMask) | ++this.#size;
    return true;
  }

  /** Returns the slot of the key, or the free slot for it. */
  #slotOf(hash: number, key: Int32Array): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const held = slots[slot]!;
      if (held === 0) return slot;
      const isAlike = ((held ^ hash) & ~numberMask) === 0;
      if (isAlike && this.#isAt((held & numberMask) - 1, key)) return slot;
    }
  }

  #isAt(index: number, key: Int32Array): boolean {
    for (let word = 0; word < words; word++)
      if (this.#keys[words * index + word] !== key[word]) return false;
    return true;
  }
}

function readUuid(uuid: string, to: Int32Array): void {
  to[0] = (fourDigits(uuid, 0) << 16) | fourDigits(uuid, 4);
  to[1] = (fourDigits(uuid, 9) << 16) | fourDigits(uuid, 14);
  to[2] = (fourDigits(uuid, 19) << 16) | fourDigits(uuid, 24);
  to[3] = (fourDigits(uuid, 28) << 16) | fourDigits(uuid, 32);
}

const digits = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) digits[digit.toString(16).charCodeAt(0)] = digit;

function fourDigits(uuid: string, at: number): number {
  return (
    (digits[uuid.charCodeAt(at)]! << 12) |
    (digits[uuid.charCodeAt(at + 1)]! << 8) |
    (digits[uuid.charCodeAt(at + 2)]! << 4) |
    digits[uuid.charCodeAt(at + 3)]!
  );
}

/** Random words of the hash, so that no client can choose uuids that share a slot. */
const seeds = crypto.getRandomValues(new Int32Array(words));

function textsHash(
  seed: number,
  { projectId, event, distinctId }: Pick<SinkRecord, "projectId" | "event" | "distinctId">,
): number {
  return textHash(textHash(textHash(seed, projectId), event), distinctId);
}

/** Returns the hash of a text, continued from that of another text. */
function textHash(before: number, text: string): number {
  let hash = mixed(before, text.length);
  for (let at = 0; at < text.length; at++) hash = mixed(hash, text.charCodeAt(at));
  return hash;
}

function hashOf(key: Int32Array): number {
  let hash = 0;
  for (let word = 0; word < words; word++) hash = mixed(hash, key[word]! ^ seeds[word]!);
  hash = Math.imul(hash, 0x297a2d39);
  return hash ^ (hash >>> 15);
}

function mixed(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x2c1b3c6d);
  return product ^ (product >>> 15);
}
