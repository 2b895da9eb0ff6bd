// Projects in the order of their bytes, the one with the most first. It is a heap, so that to note
// a change, or to find the first few, takes a few steps however many projects there are.

export interface Ranked {
  readonly projectId: string;
  readonly counted: number;
  readonly acked: number;
  /** The place in the heap, once the fill has been in one. Only the ranking sets it. */
  place: number;
}

export class FillRanking<Fill extends Ranked> {
  #heap: Fill[] = [];

  /** Adds the fill, or moves it to where it belongs now: called after each change of its bytes. */
  put(fill: Fill): void {
    if (!this.#has(fill)) {
      fill.place = this.#heap.length;
      this.#heap.push(fill);
    }
    this.#settle(fill);
  }

  delete(fill: Fill): void {
    if (!this.#has(fill)) return;
    const last = this.#heap.pop()!;
    if (last === fill) return;
    this.#set(last, fill.place);
    this.#settle(last);
  }

  clear(): void {
    this.#heap = [];
  }

  /** The first few, in order. */
  first(count: number): Fill[] {
    const found: Fill[] = [];
    // The next one is among those whose parents were found, and the heap's first.
    const next = this.#heap.slice(0, 1);
    while (found.length < count && next.length > 0) {
      const most = next.reduce((left, right) => (isBefore(right, left) ? right : left));
      found.push(most);
      next.splice(next.indexOf(most), 1, ...this.#below(most));
    }
    return found;
  }

  /** Those with more than so many bytes, in no order. */
  above(bytes: number): Fill[] {
    const found = this.#heap.slice(0, 1).filter((fill) => bytesOf(fill) > bytes);
    // The array grows while it is walked.
    for (const fill of found)
      for (const below of this.#below(fill)) if (bytesOf(below) > bytes) found.push(below);
    return found;
  }

  #has(fill: Fill): boolean {
    return this.#heap[fill.place] === fill;
  }

  #set(fill: Fill, place: number): void {
    this.#heap[place] = fill;
    fill.place = place;
  }

  #below({ place }: Fill): Fill[] {
    return this.#heap.slice(2 * place + 1, 2 * place + 3);
  }

  /** Moves the fill up, or down, until it is in order with those above and below it. */
  #settle(fill: Fill): void {
    while (fill.place > 0) {
      const above = this.#heap[(fill.place - 1) >> 1]!;
      if (!isBefore(fill, above)) break;
      this.#swap(fill, above);
    }
    for (;;) {
      const left = this.#heap[2 * fill.place + 1];
      if (left === undefined) return;
      const right = this.#heap[2 * fill.place + 2];
      const most = right !== undefined && isBefore(right, left) ? right : left;
      if (!isBefore(most, fill)) return;
      this.#swap(fill, most);
    }
  }

  #swap(one: Fill, other: Fill): void {
    const { place } = one;
    this.#set(one, other.place);
    this.#set(other, place);
  }
}

function bytesOf({ counted, acked }: Ranked): number {
  return counted + acked;
}

/** The ids decide between two with as many bytes, so that there is one order. */
function isBefore(left: Ranked, right: Ranked): boolean {
  const more = bytesOf(left) - bytesOf(right);
  return more > 0 || (more === 0 && left.projectId < right.projectId);
}
