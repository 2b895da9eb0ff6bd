// Caches rows by project and id in two generations. Changed rows are evicted only after a commit.

export interface CachedRow {
  readonly projectId: string;
  readonly id: string;
  readonly bytes: number;
  isChanged: boolean;
}

type Generation<Row> = Map<string, Map<string, Row>>;

// Maximum number of rows of a generation. It is below the limit of a Map, which is 2^24 entries.
const rowsMax = 8_000_000;

const pauseMask = 63;

export class RowCache<Row extends CachedRow> {
  readonly #bytesMax: number;
  generation = 0;
  #young: Generation<Row> = new Map();
  #old: Generation<Row> = new Map();
  #youngBytes = 0;
  #youngRows = 0;
  #oldBytes = 0;
  #changed: Row[] = [];
  #changedBytes = 0;
  #inFlight: Row[][] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get changedRows(): number {
    return this.#changed.length;
  }

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

  /**
   * Adds `bytes` to the size of a row. `bytes` may be negative. The caller must have looked up the
   * row immediately before.
   */
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
   * Calls `write` for each row that changed since the last call, and returns the results. The rows
   * stay cached until the caller calls `committed`. The caller must not change a row until the
   * promise is fulfilled.
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

  committed(): void {
    this.#inFlight.shift();
  }

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
