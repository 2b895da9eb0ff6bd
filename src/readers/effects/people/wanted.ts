// Collects the rows that a batch needs before it can be applied.

import type { GroupName } from "../store/port.ts";

export interface Missing {
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly groups: readonly GroupName[];
  /** The projects whose group types are all loaded. */
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
