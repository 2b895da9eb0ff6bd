// A first-in, first-out queue. Pushing and shifting cost the same however long it is.

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head++] = undefined;
    // Once half of the array is spent, the rest moves to its front. That keeps the memory in
    // proportion to the length, and the cost per item constant.
    if (this.#head * 2 >= this.#items.length) {
      this.#items.copyWithin(0, this.#head);
      this.#items.length -= this.#head;
      this.#head = 0;
    }
    return item;
  }

  /**
   * Takes out the items the test returns true for, and returns them; the others keep their order.
   */
  take(test: (item: T) => boolean): T[] {
    const taken: T[] = [];
    const kept: T[] = [];
    for (const item of this) (test(item) ? taken : kept).push(item);
    if (taken.length > 0) {
      this.#items = kept;
      this.#head = 0;
    }
    return taken;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
