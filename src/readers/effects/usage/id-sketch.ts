// Estimates the number of distinct ids with HyperLogLog. With 2,048 registers, the error is about
// 2.3 %.

const registers = 2048;
const registerBits = 11;
const rankBits = 32;
const listedMax = 256;
const bytesPerListed = 3;

/**
 * The sketch. If at most 256 registers are not 0, the stored form lists these registers in
 * ascending order. Each takes three bytes: two for its number, high byte first, and one for its
 * value.
 *
 * If more registers are not 0, the stored form contains all registers, one byte each.
 */
export class IdSketch {
  #dense: Uint8Array | undefined;
  #listed: number[] = [];

  /** Parses the stored form. Throws a RangeError if the number of bytes is invalid. */
  static from(bytes: Uint8Array): IdSketch {
    const sketch = new IdSketch();
    if (bytes.length === registers) {
      sketch.#dense = Uint8Array.from(bytes);
      return sketch;
    }
    if (bytes.length % bytesPerListed !== 0 || bytes.length > listedMax * bytesPerListed)
      throw new RangeError(`cannot read a sketch of ids: it has ${bytes.length} bytes`);
    for (let at = 0; at < bytes.length; at += bytesPerListed)
      sketch.#raise((bytes[at]! << 8) | bytes[at + 1]!, bytes[at + 2]!);
    return sketch;
  }

  add(high: number, low: number): boolean {
    return this.#raise(high >>> (32 - registerBits), Math.clz32(low) + 1);
  }

  join(other: IdSketch): boolean {
    let hasChanged = false;
    if (other.#dense === undefined) {
      for (let at = 0; at < other.#listed.length; at++)
        if (this.#raise(other.#listed[at]! >>> 6, other.#listed[at]! & 63)) hasChanged = true;
    } else {
      for (const [register, value] of other.#dense.entries())
        if (value > 0 && this.#raise(register, value)) hasChanged = true;
    }
    return hasChanged;
  }

  bytes(): Uint8Array {
    if (this.#dense !== undefined) return Uint8Array.from(this.#dense);
    const bytes = new Uint8Array(bytesPerListed * this.#listed.length);
    for (let at = 0; at < this.#listed.length; at++) {
      const register = this.#listed[at]! >>> 6;
      bytes.set([register >>> 8, register & 255, this.#listed[at]! & 63], bytesPerListed * at);
    }
    return bytes;
  }

  /** Returns the estimate (Ertl, "New cardinality estimation algorithms for HyperLogLog", 2017). */
  estimate(): number {
    const withValue = new Array<number>(rankBits + 2).fill(0);
    if (this.#dense !== undefined) for (const value of this.#dense) withValue[value]! += 1;
    else {
      for (let at = 0; at < this.#listed.length; at++) withValue[this.#listed[at]! & 63]! += 1;
      withValue[0] = registers - this.#listed.length;
    }
    let z = registers * tau(1 - withValue[rankBits + 1]! / registers);
    for (let value = rankBits; value >= 1; value--) z = 0.5 * (z + withValue[value]!);
    z += registers * sigma(withValue[0]! / registers);
    return Math.round((registers * registers) / (2 * Math.LN2 * z));
  }

  #raise(register: number, value: number): boolean {
    if (this.#dense !== undefined) {
      if (this.#dense[register]! >= value) return false;
      this.#dense[register] = value;
      return true;
    }
    let [from, to] = [0, this.#listed.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#listed[middle]! >>> 6 < register) from = middle + 1;
      else to = middle;
    }
    if (from < this.#listed.length && this.#listed[from]! >>> 6 === register) {
      if ((this.#listed[from]! & 63) >= value) return false;
      this.#listed[from] = (register << 6) | value;
      return true;
    }
    if (this.#listed.length === listedMax) {
      this.#becomeDense();
      return this.#raise(register, value);
    }
    this.#listed.splice(from, 0, (register << 6) | value);
    return true;
  }

  #becomeDense(): void {
    this.#dense = new Uint8Array(registers);
    for (let at = 0; at < this.#listed.length; at++)
      this.#dense[this.#listed[at]! >>> 6] = this.#listed[at]! & 63;
    this.#listed = [];
  }
}

function sigma(x: number): number {
  if (x === 1) return Number.POSITIVE_INFINITY;
  let [power, y, z, before] = [x, 1, x, -1];
  while (z !== before) {
    before = z;
    power *= power;
    z += power * y;
    y += y;
  }
  return z;
}

function tau(x: number): number {
  if (x === 0 || x === 1) return 0;
  let [root, y, z, before] = [x, 1, 1 - x, -1];
  while (z !== before) {
    before = z;
    root = Math.sqrt(root);
    y *= 0.5;
    z -= (1 - root) ** 2 * y;
  }
  return z / 3;
}
