// Visits the entries of a map in rotation, two per step, to find obsolete entries without a full
// scan. With one step per added entry, the whole map is visited before its size has doubled.

export class Rounds<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #visit: (value: Value, key: Key) => void;
  #entries: MapIterator<[Key, Value]>;

  /** `visit` may delete the entry of its call. */
  constructor(map: ReadonlyMap<Key, Value>, visit: (value: Value, key: Key) => void) {
    this.#map = map;
    this.#visit = visit;
    this.#entries = map.entries();
  }

  step(): void {
    for (let visits = 0; visits < 2; visits++) {
      const next = this.#entries.next();
      if (next.done === true) {
        this.#entries = this.#map.entries();
        return;
      }
      const [key, value] = next.value;
      this.#visit(value, key);
    }
  }
}
