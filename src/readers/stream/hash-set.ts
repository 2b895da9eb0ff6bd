// A set of 64-bit hashes in one typed array. So a million hashes are one object for the garbage
// collector. The slot of a hash depends on a random key, so that clients cannot choose uuids that
// share a slot.

const slotsAtFirst = 256;
const bytesPerSlot = 8;

export class HashSet64 {
  #words = new Int32Array(2 * slotsAtFirst);
  #mask = slotsAtFirst - 1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return (this.#mask + 1) * bytesPerSlot;
  }

  get isNearlyFull(): boolean {
    return this.#size * 8 > (this.#mask + 1) * 5;
  }

  add(high: number, low: number): boolean {
    const word = wordOf(high, low);
    const slot = this.#slotOf(high | 0, word);
    if (this.#isTaken(slot)) return false;
    this.#words[2 * slot] = high;
    this.#words[2 * slot + 1] = word;
    this.#size++;
    if (this.#size * 4 > (this.#mask + 1) * 3) this.#grow();
    return true;
  }

  has(high: number, low: number): boolean {
    return this.#size > 0 && this.#isTaken(this.#slotOf(high | 0, wordOf(high, low)));
  }

  delete(high: number, low: number): void {
    let free = this.#slotOf(high | 0, wordOf(high, low));
    if (!this.#isTaken(free)) return;
    this.#size--;
    const words = this.#words;
    for (let at = (free + 1) & this.#mask; this.#isTaken(at); at = (at + 1) & this.#mask) {
      const home = slotAtFirst(words[2 * at]!, words[2 * at + 1]!) & this.#mask;
      if (((at - home) & this.#mask) < ((at - free) & this.#mask)) continue;
      words[2 * free] = words[2 * at]!;
      words[2 * free + 1] = words[2 * at + 1]!;
      free = at;
    }
    words[2 * free] = 0;
    words[2 * free + 1] = 0;
  }

  #slotOf(high: number, low: number): number {
    const words = this.#words;
    const mask = this.#mask;
    for (let slot = slotAtFirst(high, low) & mask; ; slot = (slot + 1) & mask) {
      const wordHigh = words[2 * slot]!;
      const wordLow = words[2 * slot + 1]!;
      if ((wordHigh === high && wordLow === low) || (wordHigh | wordLow) === 0) return slot;
    }
  }

  #isTaken(slot: number): boolean {
    return (this.#words[2 * slot]! | this.#words[2 * slot + 1]!) !== 0;
  }

  #grow(): void {
    const old = this.#words;
    this.#words = new Int32Array(2 * old.length);
    this.#mask = old.length - 1;
    for (let at = 0; at < old.length; at += 2) {
      const high = old[at]!;
      const low = old[at + 1]!;
      if ((high | low) === 0) continue;
      const slot = this.#slotOf(high, low);
      this.#words[2 * slot] = high;
      this.#words[2 * slot + 1] = low;
    }
  }
}

/** The hash 0 is stored as 1, because 0 marks a free slot. */
function wordOf(high: number, low: number): number {
  return (high | low) === 0 ? 1 : low | 0;
}

const [keyOfHigh, factorOfHigh, keyOfLow, factorOfLow] = crypto.getRandomValues(
  new Int32Array(4),
) as unknown as [number, number, number, number];

function slotAtFirst(high: number, low: number): number {
  let mixed = Math.imul(high ^ keyOfHigh, factorOfHigh | 1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed ^= mixed >>> 12;
  mixed = Math.imul(mixed ^ low ^ keyOfLow, factorOfLow | 1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x297a2d39);
  return mixed ^ (mixed >>> 15);
}
