import type { GroupName } from "../store/port.ts";
import type { Stamp } from "../types.ts";

export interface Missing {
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly groups: readonly GroupName[];
  readonly groupTypes: readonly string[];
}

export class Wanted {
  readonly typesOf = new Set<string>();
  readonly #members = new Map<string, Set<string>>();
  readonly #groups = new Map<string, GroupName>();
  #memberRows = 0;

  get memberRows(): number {
    return this.#memberRows;
  }

  member(projectId: string, row: string): void {
    let rows = this.#members.get(projectId);
    if (rows === undefined) {
      rows = new Set();
      this.#members.set(projectId, rows);
    }
    const { size } = rows;
    rows.add(row);
    this.#memberRows += rows.size - size;
  }

  group(name: GroupName): void {
    this.#groups.set(`${name.projectId}\0${name.type}\0${name.key}`, name);
  }

  missing(): Missing | undefined {
    if (this.#members.size === 0 && this.#groups.size === 0 && this.typesOf.size === 0)
      return undefined;
    const members = new Map<string, readonly string[]>();
    for (const [projectId, rows] of this.#members) members.set(projectId, [...rows]);
    return { members, groups: [...this.#groups.values()], groupTypes: [...this.typesOf] };
  }

  clear(): void {
    this.#memberRows = 0;
    this.#members.clear();
    this.#groups.clear();
    this.typesOf.clear();
  }
}

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

const partLength = 16;

export function partsOf<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < all.length; at += partLength) parts.push(all.slice(at, at + partLength));
  return parts;
}
