// A cache of rows, by project and id, within a memory limit. Two generations: rows that were not
// used while the younger one filled are dropped, in one step and without a list of uses. Changed
// rows stay until their commit is in the store, because the store has older ones.

/** A row knows its own size. There is one object per row; its fields may change. */
export interface CachedRow {
  readonly projectId: string;
  readonly id: string;
  readonly bytes: number;
  /** Set by the cache: the row has changed since `writeChanged`. */
  isChanged: boolean;
}

type Generation<Row> = Map<string, Map<string, Row>>;

// A Map holds 2^24 entries at most.
const rowsMax = 8_000_000;

/** Writing pauses after a number of rows that has none of these bits. */
const pauseMask = 63;

export class RowCache<Row extends CachedRow> {
  readonly #bytesMax: number;
  /** Changes when cached rows were dropped, or will be dropped unless they are used. */
  generation = 0;
  #young: Generation<Row> = new Map();
  #old: Generation<Row> = new Map();
  #youngBytes = 0;
  #youngRows = 0;
  #oldBytes = 0;
  #changed: Row[] = [];
  #changedBytes = 0;
  // Changed rows of the running commits, the oldest commit first.
  #inFlight: Row[][] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Number of rows that changed since `writeChanged`. */
  get changedRows(): number {
    return this.#changed.length;
  }

  /** Size of the changed rows. */
  get changedBytes(): number {
    return this.#changedBytes;
  }

  get bytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  get(projectId: string, id: string): Row | undefined {
    const row = this.#young.get(projectId)?.get(id);
    if (row !== undefined) return row;
    const old = this.#old.get(projectId)?.get(id);
    if (old === undefined) return undefined;
    this.#oldBytes -= old.bytes;
    this.put(old);
    return old;
  }

  put(row: Row): void {
    let rows = this.#young.get(row.projectId);
    if (rows === undefined) {
      rows = new Map();
      this.#young.set(row.projectId, rows);
    }
    rows.set(row.id, row);
    this.#youngRows++;
    this.#youngBytes += row.bytes;
  }

  /** Updates the size of a row that was just looked up by `bytes`, which may be negative. */
  grew(row: Row, bytes: number): void {
    this.#youngBytes += bytes;
    if (row.isChanged) this.#changedBytes += bytes;
  }

  changed(row: Row): void {
    if (row.isChanged) return;
    row.isChanged = true;
    this.#changedBytes += row.bytes;
    this.#changed.push(row);
  }

  /**
   * Returns what `write` makes of each row that changed since the last call. The rows stay until
   * `committed` was called for them. Yields now and then; meanwhile nothing may change.
   */
  *writeChanged<Written>(write: (row: Row) => Written): Generator<void, Written[]> {
    const rows = this.#changed;
    this.#changed = [];
    this.#changedBytes = 0;
    this.#inFlight.push(rows);
    const all: Written[] = [];
    for (const row of rows) {
      const before = row.bytes;
      row.isChanged = false;
      all.push(write(row));
      this.#youngBytes += row.bytes - before;
      if ((all.length & pauseMask) === 0) yield;
    }
    return all;
  }

  /** The oldest running commit is in the store. */
  committed(): void {
    this.#inFlight.shift();
  }

  /**
   * Drops rows above the limit. Only between batches: a batch needs the rows that it has looked up.
   */
  trim(): void {
    if (this.#youngBytes < this.#bytesMax / 2 && this.#youngRows < rowsMax) return;
    this.generation++;
    this.#old = this.#young;
    this.#oldBytes = this.#youngBytes;
    this.#young = new Map();
    this.#youngBytes = 0;
    this.#youngRows = 0;
    for (const rows of [...this.#inFlight, this.#changed]) {
      for (const row of rows) {
        if (this.get(row.projectId, row.id) === undefined) this.put(row);
      }
    }
  }

  clear(): void {
    this.generation++;
    this.#young = new Map();
    this.#old = new Map();
    this.#youngBytes = 0;
    this.#youngRows = 0;
    this.#oldBytes = 0;
    this.#changed = [];
    this.#changedBytes = 0;
    this.#inFlight = [];
  }
}
