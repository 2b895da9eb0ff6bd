// Finds the distinct ids that have most of a minute's events, by Space-Saving with 64 counters
// (Metwally, Agrawal, El Abbadi 2005): whatever the number of ids, 64 are remembered.

import { IdHash } from "../lines/id-hash.ts";

const countersMax = 64;
/** A power of two, so many times the counters that most ids are found, or missed, at once. */
const places = 256;
const noSlot = 255;
const idHash = new IdHash();

/** A counter: an id, its count, and by how much the count may be too high. */
export type HotIdCounter = readonly [id: string, count: number, error: number];

/** What it says depends on the order of the ids, and on nothing else. */
export class HotIds {
  /**
   * Open addressing by the hash of an id. In the minutes of a burst nearly every event takes one id
   * out and another in, which costs a Map several times as much.
   */
  readonly #slots = new Uint8Array(places).fill(noSlot);
  readonly #ids: string[] = [];
  /** By slot, as the ids. */
  readonly #hashes: number[] = [];
  readonly #counts: number[] = [];
  readonly #errors: number[] = [];
  /** The least count when it was looked for last, and how many slots are above it for certain. */
  #least = 0;
  #passed = 0;

  constructor(counters: readonly HotIdCounter[] = []) {
    for (const [id, count, error] of counters) {
      idHash.set(id);
      this.#insert(this.#placeOf(id, idHash.high), id, idHash.high);
      this.#counts.push(count);
      this.#errors.push(error);
    }
  }

  /** `hash`: the high word of the id's. */
  add(id: string, hash: number): void {
    const place = this.#placeOf(id, hash);
    const slot = this.#slots[place]!;
    if (slot !== noSlot) {
      this.#counts[slot]! += 1;
    } else if (this.#ids.length < countersMax) {
      this.#insert(place, id, hash);
      this.#counts.push(1);
      this.#errors.push(0);
    } else {
      const least = this.#leastSlot();
      this.#free(this.#placeOf(this.#ids[least]!, this.#hashes[least]!));
      this.#ids[least] = id;
      this.#hashes[least] = hash;
      this.#slots[this.#placeOf(id, hash)] = least;
      this.#errors[least] = this.#counts[least]!;
      this.#counts[least]! += 1;
    }
  }

  /** The ids that certainly have more events than that, and how many they have at least. */
  over(events: number): Map<string, number> {
    const found = new Map<string, number>();
    for (const [id, count, error] of this.counters())
      if (count - error > events) found.set(id, count - error);
    return found;
  }

  /** For the constructor of one that goes on in the same way. */
  counters(): HotIdCounter[] {
    return this.#ids.map((id, slot) => [id, this.#counts[slot]!, this.#errors[slot]!]);
  }

  #insert(place: number, id: string, hash: number): void {
    this.#slots[place] = this.#ids.length;
    this.#ids.push(id);
    this.#hashes.push(hash);
  }

  /** Where the id's slot stands, or would. */
  #placeOf(id: string, hash: number): number {
    for (let place = hash & (places - 1); ; place = (place + 1) & (places - 1)) {
      const slot = this.#slots[place]!;
      if (slot === noSlot || (this.#hashes[slot] === hash && this.#ids[slot] === id)) return place;
    }
  }

  /** What stands behind moves up, unless it then stood before where it is looked for. */
  #free(place: number): void {
    const slots = this.#slots;
    let free = place;
    for (let at = (free + 1) & (places - 1); slots[at] !== noSlot; at = (at + 1) & (places - 1)) {
      const home = this.#hashes[slots[at]!]! & (places - 1);
      if (((at - home) & (places - 1)) < ((at - free) & (places - 1))) continue;
      slots[free] = slots[at]!;
      free = at;
    }
    slots[free] = noSlot;
  }

  /** The first slot of those with the least count. Counts only grow, so each is passed once. */
  #leastSlot(): number {
    for (;;) {
      for (; this.#passed < countersMax; this.#passed++)
        if (this.#counts[this.#passed] === this.#least) return this.#passed;
      this.#least = Math.min(...this.#counts);
      this.#passed = 0;
    }
  }
}
