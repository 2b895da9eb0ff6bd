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
    if (this.#head * 2 >= this.#items.length) {
      this.#items.copyWithin(0, this.#head);
      this.#items.length -= this.#head;
      this.#head = 0;
    }
    return item;
  }

  take(test: (item: T) => boolean): T[] {
    const taken: T[] = [];
    const rest: T[] = [];
    for (const item of this) (test(item) ? taken : rest).push(item);
    if (taken.length > 0) {
      this.#items = rest;
      this.#head = 0;
    }
    return taken;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
