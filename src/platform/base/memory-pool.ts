// Blocks of memory that are used again: fresh memory costs a page fault every 4 KiB, more than ten
// times what copying into it does. The pool keeps a limited number of bytes, and nothing once no
// block has been given back for a while.

interface MemoryPoolOptions {
  readonly keptBytesMax: number;
  /**
   * What a full pool does with a block: `drop_smallest` keeps it and gives the smallest ones back
   * to the system at once; `refuse` leaves it to the collector.
   */
  readonly full: "drop_smallest" | "refuse";
  /** When no block has been given back for this long, the pool frees all that it keeps. */
  readonly idleMs: number;
  /**
   * A block may be at most this many times as large as what is asked for; 1: only the same size.
   */
  readonly wasteFactor: number;
}

/** The blocks that are kept of one size. */
interface Shelf {
  readonly size: number;
  readonly blocks: Buffer[];
}

/**
 * Once the pool knows this many sizes, a new size makes it forget those of which no block is kept.
 */
const shelvesMax = 16;

export class MemoryPool {
  readonly #options: MemoryPoolOptions;
  /** Ascending by size. */
  #shelves: Shelf[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryPoolOptions) {
    this.#options = options;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Gives a block of at least `bytes`. Its content is undefined. */
  take(bytes: number): Buffer {
    for (let place = 0; place < this.#shelves.length; place++) {
      const { size, blocks } = this.#shelves[place]!;
      if (size > this.#options.wasteFactor * bytes) break;
      if (size < bytes || blocks.length === 0) continue;
      this.#keptBytes -= size;
      return blocks.pop()!;
    }
    return Buffer.allocUnsafeSlow(bytes);
  }

  /** Takes a block back. After that, nobody else may read or write the block. */
  give(block: Buffer): void {
    const { keptBytesMax, idleMs, full } = this.#options;
    if (full === "refuse" && this.#keptBytes + block.length > keptBytesMax) return;
    if (block.length > keptBytesMax) {
      discard(block);
      return;
    }
    this.#shelfOf(block.length).blocks.push(block);
    this.#keptBytes += block.length;
    while (this.#keptBytes > keptBytesMax) this.#dropSmallest();
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#empty(), idleMs).unref();
    else this.#timer.refresh();
  }

  #shelfOf(size: number): Shelf {
    const known = this.#shelves.find((shelf) => shelf.size === size);
    if (known !== undefined) return known;
    if (this.#shelves.length >= shelvesMax)
      this.#shelves = this.#shelves.filter(({ blocks }) => blocks.length > 0);
    const larger = this.#shelves.findIndex((shelf) => shelf.size > size);
    const shelf = { size, blocks: [] };
    this.#shelves.splice(larger < 0 ? this.#shelves.length : larger, 0, shelf);
    return shelf;
  }

  #dropSmallest(): void {
    const { size, blocks } = this.#shelves[0]!;
    const block = blocks.pop();
    if (blocks.length === 0) this.#shelves.shift();
    if (block === undefined) return;
    this.#keptBytes -= size;
    discard(block);
  }

  #empty(): void {
    this.#timer = undefined;
    while (this.#shelves.length > 0) this.#dropSmallest();
  }
}

/**
 * Gives the memory back to the system now: left to the collector, blocks of 20 MB would pile up,
 * and an idle process collects no garbage.
 */
function discard(block: Buffer): void {
  if (block.buffer instanceof ArrayBuffer) block.buffer.transfer(0);
}
