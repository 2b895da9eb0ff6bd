// What a batch needs from the store before it can be applied, and what is known of the ids already:
// when they were first and last seen. Each id, group and project is asked for once.

import type { GroupName } from "../store/port.ts";
import type { Stamp } from "../types.ts";

/** An id of the batch whose row, or whose person's row, is not in memory. */
export interface WantedId {
  /** The row to be read: that of the id, or one on the way to its person. */
  readonly row: string;
  /** The oldest of its plain events; undefined: it has none. */
  stamp: Stamp | undefined;
  lastMs: number;
  /** Whether the store has a row for the id. */
  isFound: boolean;
}

/** What to read, by project; each row once. */
export interface Missing {
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly groups: readonly GroupName[];
  /** Projects whose group types are to be read, all of them. */
  readonly groupTypes: readonly string[];
}

export class Wanted {
  readonly ids = new Map<string, Map<string, WantedId>>();
  readonly groups = new Map<string, GroupName>();
  readonly typesOf = new Set<string>();

  /** How many ids are wanted. */
  size = 0;

  get isEmpty(): boolean {
    return this.ids.size === 0 && this.groups.size === 0 && this.typesOf.size === 0;
  }

  id(projectId: string, id: string, row: string): WantedId {
    let ids = this.ids.get(projectId);
    if (ids === undefined) {
      ids = new Map();
      this.ids.set(projectId, ids);
    }
    let wanted = ids.get(id);
    if (wanted === undefined) {
      wanted = { row, stamp: undefined, lastMs: Number.NEGATIVE_INFINITY, isFound: row !== id };
      ids.set(id, wanted);
      this.size++;
    }
    return wanted;
  }

  /** The store has a row for the id, which may be wanted. */
  found(projectId: string, id: string): void {
    const wanted = this.ids.get(projectId)?.get(id);
    if (wanted !== undefined) wanted.isFound = true;
  }

  group(name: GroupName): void {
    this.groups.set(`${name.projectId}\0${name.type}\0${name.key}`, name);
  }

  clear(): void {
    this.size = 0;
    this.ids.clear();
    this.groups.clear();
    this.typesOf.clear();
  }
}

/** So few that the rows of a part are no more than 32. */
const partLength = 16;

export function partsOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < all.length; at += partLength) parts.push(all.slice(at, at + partLength));
  return parts;
}
