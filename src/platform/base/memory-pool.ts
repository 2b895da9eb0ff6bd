// A pool of reusable memory blocks. Copying into new memory takes more than ten times as long,
// because the system must first provide each page of 4 KiB.

interface MemoryPoolOptions {
  readonly keptBytesMax: number;
  readonly full: "drop_smallest" | "refuse";
  readonly idleMs: number;
  readonly wasteFactor: number;
}

interface SizeClass {
  readonly size: number;
  readonly blocks: Buffer[];
}

const sizeClassesMax = 16;

export class MemoryPool {
  readonly #options: MemoryPoolOptions;
  #classes: SizeClass[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryPoolOptions) {
    this.#options = options;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

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

  /** Returns a block to the pool. The caller must not use it afterwards. */
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
 * Frees the memory immediately. Otherwise, freed blocks would accumulate, because an idle process
 * does not collect garbage.
 */
function discard(block: Buffer): void {
  if (block.buffer instanceof ArrayBuffer) block.buffer.transfer(0);
}
