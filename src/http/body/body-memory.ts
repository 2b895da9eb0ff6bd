// Memory for bodies that come in pieces. Keeps a few large blocks for the next body: fresh memory
// costs a page fault every 4 KiB, more than ten times what copying into it does. Lets go of them
// when no body came for a while.

/** Two bodies of the default cap; what is beyond is given back at once, smallest blocks first. */
const KEPT_BYTES_MAX = 44_040_192;
const IDLE_MS = 10_000;
/** A block is not spent on a body that needs less than this share of it. */
const WASTE_FACTOR = 4;

export class BodyMemory {
  /** Ascending by size. */
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** A block of at least `bytes`, with anything in it. */
  take(bytes: number): Buffer {
    const place = this.#kept.findIndex((block) => block.length >= bytes);
    if (place < 0 || this.#kept[place]!.length > WASTE_FACTOR * bytes)
      return Buffer.allocUnsafeSlow(bytes);
    const block = this.#kept.splice(place, 1)[0]!;
    this.#keptBytes -= block.length;
    return block;
  }

  /** Takes a block back. Nothing may read or write it any more. */
  give(block: Buffer): void {
    if (block.length > KEPT_BYTES_MAX) {
      discard(block);
      return;
    }
    const place = this.#kept.findIndex((other) => other.length >= block.length);
    this.#kept.splice(place < 0 ? this.#kept.length : place, 0, block);
    this.#keptBytes += block.length;
    while (this.#keptBytes > KEPT_BYTES_MAX) this.#drop();
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#idle(), IDLE_MS).unref();
    else this.#timer.refresh();
  }

  #idle(): void {
    this.#timer = undefined;
    while (this.#kept.length > 0) this.#drop();
  }

  #drop(): void {
    const block = this.#kept.shift();
    if (block === undefined) return;
    this.#keptBytes -= block.length;
    discard(block);
  }
}

/**
 * Gives the memory back to the system now: left to the collector, blocks of 20 MB would pile up.
 */
function discard(block: Buffer): void {
  if (block.buffer instanceof ArrayBuffer) block.buffer.transfer(0);
}
