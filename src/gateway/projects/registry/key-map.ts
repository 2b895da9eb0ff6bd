// Maps keys to projects. If two projects have the same key, it belongs to neither. Otherwise,
// events of one project could be stored for the other.

import type { MeteredProject } from "../project.ts";

export interface Clash {
  readonly projects: readonly [string, string];
  readonly isOver: boolean;
}

export type ClashTaker = (clash: Clash) => void;

export class KeyMap {
  readonly #projectOf = new Map<string, MeteredProject>();
  readonly #contested = new Map<string, Map<string, MeteredProject>>();
  readonly #clashes = new Map<string, number>();
  readonly #onClash: ClashTaker;

  constructor(onClash: ClashTaker) {
    this.#onClash = onClash;
  }

  get(key: string): MeteredProject | undefined {
    return this.#projectOf.get(key);
  }

  isContested(key: string): boolean {
    return this.#contested.has(key);
  }

  get contestedPairs(): readonly (readonly [string, string])[] {
    return [...this.#clashes.keys()].map((pair) => pair.split(" ") as [string, string]);
  }

  put(project: MeteredProject, before: MeteredProject | undefined): void {
    for (const key of before?.keys ?? [])
      if (!project.keys.includes(key)) this.#drop(key, project.id);
    for (const key of project.keys) this.#claim(key, project);
  }

  remove(project: MeteredProject): void {
    for (const key of project.keys) this.#drop(key, project.id);
  }

  #claim(key: string, project: MeteredProject): void {
    const claimants = this.#contested.get(key);
    const holder = this.#projectOf.get(key);
    if (claimants?.has(project.id)) claimants.set(project.id, project);
    else if (claimants !== undefined) {
      for (const other of claimants.keys()) this.#count(other, project.id, 1);
      claimants.set(project.id, project);
    } else if (holder === undefined || holder.id === project.id) this.#projectOf.set(key, project);
    else {
      this.#projectOf.delete(key);
      this.#contested.set(
        key,
        new Map([
          [holder.id, holder],
          [project.id, project],
        ]),
      );
      this.#count(holder.id, project.id, 1);
    }
  }

  #drop(key: string, id: string): void {
    const claimants = this.#contested.get(key);
    if (claimants === undefined) {
      if (this.#projectOf.get(key)?.id === id) this.#projectOf.delete(key);
      return;
    }
    if (!claimants.delete(id)) return;
    for (const other of claimants.keys()) this.#count(other, id, -1);
    const [last] = claimants.values();
    if (claimants.size > 1 || last === undefined) return;
    this.#contested.delete(key);
    this.#projectOf.set(key, last);
  }

  #count(left: string, right: string, change: 1 | -1): void {
    const projects: [string, string] = left < right ? [left, right] : [right, left];
    const pair = projects.join(" ");
    const count = (this.#clashes.get(pair) ?? 0) + change;
    if (count === 0) this.#clashes.delete(pair);
    else this.#clashes.set(pair, count);
    if (count === 0 || (count === 1 && change === 1))
      this.#onClash({ projects, isOver: count === 0 });
  }
}
