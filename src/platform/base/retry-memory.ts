// Recognizes the retry of a failed request whose events may be stored. If a client repeats a
// request after a 200, the request does not count as a retry.

const valuesMax = 16_384;
/** The same time as the duplicate window of the streams. */
const rememberedMs = 120_000;

interface Remembered<Value> {
  readonly value: Value;
  readonly untilMonotonicMs: number;
}

export class RetryMemory<Value> {
  readonly #monotonicMs: () => number;
  readonly #known = new Map<string, Remembered<Value>[]>();
  #size = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  get isEmpty(): boolean {
    if (this.#size > 0) this.#forgetOld();
    return this.#size === 0;
  }

  /**
   * Removes and returns the oldest value of the key, because each value can match only one retry.
   */
  take(key: string): Value | undefined {
    this.#forgetOld();
    const values = this.#known.get(key);
    const now = this.#monotonicMs();
    for (let first = values?.shift(); first !== undefined; first = values?.shift()) {
      this.#size--;
      if (values?.length === 0) this.#known.delete(key);
      if (first.untilMonotonicMs > now) return first.value;
    }
    return undefined;
  }

  remember(key: string, value: Value): void {
    this.#forgetOld();
    const values = this.#known.get(key) ?? [];
    values.push({ value, untilMonotonicMs: this.#monotonicMs() + rememberedMs });
    this.#known.delete(key);
    this.#known.set(key, values);
    this.#size++;
    if (this.#size > valuesMax) this.#forgetFirst();
  }

  #forgetOld(): void {
    const now = this.#monotonicMs();
    for (const values of this.#known.values()) {
      if (values.at(-1)!.untilMonotonicMs > now) return;
      while (values.length > 0) this.#forgetFirst();
    }
  }

  #forgetFirst(): void {
    for (const [key, values] of this.#known) {
      values.shift();
      this.#size--;
      if (values.length === 0) this.#known.delete(key);
      return;
    }
  }
}
