// Distinct ids of plain lines that wait for their rows: each with when it was seen first and last.
// Plain lines of an id make one touch, whatever comes between them.

import type { Stamp } from "../types.ts";

/** First at `stamp`, last at `lastMs`. */
export interface Seen {
  stamp: Stamp;
  lastMs: number;
}

export class PlainIds {
  readonly #projects = new Map<string, Map<string, Seen>>();

  /** How many ids wait. */
  size = 0;

  get(projectId: string, id: string): Seen | undefined {
    return this.#projects.get(projectId)?.get(id);
  }

  /** An id that does not wait yet. */
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

/** So few that the rows of a part are no more than 32. */
const partLength = 16;

export function partsOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < all.length; at += partLength) parts.push(all.slice(at, at + partLength));
  return parts;
}
