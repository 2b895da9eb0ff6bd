// Finds the distinct ids with the most events in a minute (Space-Saving: Metwally, Agrawal, El
// Abbadi 2005).

import { IdHash } from "../lines/hashes.ts";

const countersMax = 64;
const places = 256;
const noSlot = 255;
const idHash = new IdHash();

/** An id, its estimated count, and the largest possible overestimate of the count. */
export type HotIdCounter = readonly [id: string, count: number, error: number];

export class HotIds {
  readonly #slots = new Uint8Array(places).fill(noSlot);
  readonly #ids: string[] = [];
  readonly #hashes: number[] = [];
  readonly #counts: number[] = [];
  readonly #errors: number[] = [];
  #least = 0;
  #passed = 0;

  constructor(counters: readonly HotIdCounter[] = []) {
    for (const [id, count, error] of counters) {
      idHash.set(id);
      this.#insert(this.#probe(id, idHash.high), id, idHash.high);
      this.#counts.push(count);
      this.#errors.push(error);
    }
  }

  /** Counts an event. `hash` is the upper 32 bits of the hash of the id. */
  add(id: string, hash: number): void {
    const place = this.#probe(id, hash);
    const slot = this.#slots[place]!;
    if (slot !== noSlot) {
      this.#counts[slot]! += 1;
    } else if (this.#ids.length < countersMax) {
      this.#insert(place, id, hash);
      this.#counts.push(1);
      this.#errors.push(0);
    } else {
      const least = this.#leastSlot();
      this.#free(this.#probe(this.#ids[least]!, this.#hashes[least]!));
      this.#ids[least] = id;
      this.#hashes[least] = hash;
      this.#slots[this.#probe(id, hash)] = least;
      this.#errors[least] = this.#counts[least]!;
      this.#counts[least]! += 1;
    }
  }

  /** Returns the ids that certainly have more than `events` events, and their minimum counts. */
  over(events: number): Map<string, number> {
    const found = new Map<string, number>();
    for (const [id, count, error] of this.counters())
      if (count - error > events) found.set(id, count - error);
    return found;
  }

  counters(): HotIdCounter[] {
    return this.#ids.map((id, slot) => [id, this.#counts[slot]!, this.#errors[slot]!]);
  }

  #insert(place: number, id: string, hash: number): void {
    this.#slots[place] = this.#ids.length;
    this.#ids.push(id);
    this.#hashes.push(hash);
  }

  #probe(id: string, hash: number): number {
    for (let place = hash & (places - 1); ; place = (place + 1) & (places - 1)) {
      const slot = this.#slots[place]!;
      if (slot === noSlot || (this.#hashes[slot] === hash && this.#ids[slot] === id)) return place;
    }
  }

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

  #leastSlot(): number {
    for (;;) {
      for (; this.#passed < countersMax; this.#passed++)
        if (this.#counts[this.#passed] === this.#least) return this.#passed;
      this.#least = Math.min(...this.#counts);
      this.#passed = 0;
    }
  }
}
