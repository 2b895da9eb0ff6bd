// Distinct ids of plain lines that wait for their rows, each with its first and last time. All
// plain lines of an id become one touch.

import type { Stamp } from "../types.ts";

/** First at `stamp`, last at `lastMs`. */
export interface Seen {
  stamp: Stamp;
  lastMs: number;
}

export class PlainIds {
  readonly #projects = new Map<string, Map<string, Seen>>();

  /** Number of waiting ids. */
  size = 0;

  get(projectId: string, id: string): Seen | undefined {
    return this.#projects.get(projectId)?.get(id);
  }

  /** Adds an id that does not wait yet. */
  add(projectId: string, id: string, seen: Seen): void {
    let ids = this.#projects.get(projectId);
    if (ids === undefined) {
      ids = new Map();
      this.#projects.set(projectId, ids);
    }
    ids.set(id, seen);
    this.size++;
  }

  *all(): Generator<readonly [projectId: string, ids: ReadonlyMap<string, Seen>]> {
    yield* this.#projects;
  }

  clear(): void {
    this.size = 0;
    this.#projects.clear();
  }
}

/** Small enough that a part needs no more than 32 rows. */
const partLength = 16;

export function partsOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < all.length; at += partLength) parts.push(all.slice(at, at + partLength));
  return parts;
}
