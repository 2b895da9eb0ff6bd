// Goes round a map, two entries a step, so that what is of no more use in it is found in time
// though no step walks all of it. With a step for each entry that is added, the map is gone through
// before it has doubled.

export class Rounds<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #visit: (value: Value, key: Key) => void;
  #entries: MapIterator<[Key, Value]>;

  /** `visit` may delete the entry that it is called with. */
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
