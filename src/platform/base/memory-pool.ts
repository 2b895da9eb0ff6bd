// A pool of reusable memory blocks: fresh memory costs a page fault every 4 KiB, more than ten
// times the cost of copying into it. The pool holds a limited number of bytes, and frees them all
// if no block was returned for a while.

interface MemoryPoolOptions {
  readonly keptBytesMax: number;
  /**
   * What a full pool does with a returned block: `drop_smallest` pools it and immediately frees the
   * smallest ones; `refuse` leaves it to the garbage collector.
   */
  readonly full: "drop_smallest" | "refuse";
  /** If no block was returned for this long, the pool frees all blocks. */
  readonly idleMs: number;
  /** Maximum ratio of a block's size to the requested size; 1: only the exact size. */
  readonly wasteFactor: number;
}

/** The pooled blocks of one size. */
interface SizeClass {
  readonly size: number;
  readonly blocks: Buffer[];
}

/**
 * Maximum number of sizes that the pool tracks; beyond it, sizes without pooled blocks are removed.
 */
const sizeClassesMax = 16;

export class MemoryPool {
  readonly #options: MemoryPoolOptions;
  /** Ascending by size. */
  #classes: SizeClass[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryPoolOptions) {
    this.#options = options;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Returns a block of at least `bytes`, with undefined content. */
  take(bytes: number): Buffer {
    for (let place = 0; place < this.#classes.length; place++) {
      const { size, blocks } = this.#classes[place]!;
      if (size > this.#options.wasteFactor * bytes) break;
      if (size < bytes || blocks.length === 0) continue;
      this.#keptBytes -= size;
      return blocks.pop()!;
    }
    return Buffer.allocUnsafeSlow(bytes);
  }

  /** Returns a block to the pool. The caller must not use the block afterwards. */
  give(block: Buffer): void {
    const { keptBytesMax, idleMs, full } = this.#options;
    if (full === "refuse" && this.#keptBytes + block.length > keptBytesMax) return;
    if (block.length > keptBytesMax) {
      discard(block);
      return;
    }
    this.#classOf(block.length).blocks.push(block);
    this.#keptBytes += block.length;
    while (this.#keptBytes > keptBytesMax) this.#dropSmallest();
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#empty(), idleMs).unref();
    else this.#timer.refresh();
  }

  #classOf(size: number): SizeClass {
    const known = this.#classes.find((one) => one.size === size);
    if (known !== undefined) return known;
    if (this.#classes.length >= sizeClassesMax)
      this.#classes = this.#classes.filter(({ blocks }) => blocks.length > 0);
    const larger = this.#classes.findIndex((one) => one.size > size);
    const added: SizeClass = { size, blocks: [] };
    this.#classes.splice(larger < 0 ? this.#classes.length : larger, 0, added);
    return added;
  }

  #dropSmallest(): void {
    const { size, blocks } = this.#classes[0]!;
    const block = blocks.pop();
    if (blocks.length === 0) this.#classes.shift();
    if (block === undefined) return;
    this.#keptBytes -= size;
    discard(block);
  }

  #empty(): void {
    this.#timer = undefined;
    while (this.#classes.length > 0) this.#dropSmallest();
  }
}

/**
 * Frees the memory immediately: blocks of 20 MB that are left to the garbage collector would pile
 * up, and an idle process collects no garbage.
 */
function discard(block: Buffer): void {
  if (block.buffer instanceof ArrayBuffer) block.buffer.transfer(0);
}
