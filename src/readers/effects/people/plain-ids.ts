import type { Stamp } from "../types.ts";

/** The first stamp and the last time at which an id was seen. */
export interface Seen {
  stamp: Stamp;
  lastMs: number;
}

export class PlainIds {
  readonly #projects = new Map<string, Map<string, Seen>>();

  size = 0;

  get(projectId: string, id: string): Seen | undefined {
    return this.#projects.get(projectId)?.get(id);
  }

  /** The id must not be in the collection. */
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

/** A part of this length needs at most 32 rows. */
const partLength = 16;

export function partsOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < all.length; at += partLength) parts.push(all.slice(at, at + partLength));
  return parts;
}
