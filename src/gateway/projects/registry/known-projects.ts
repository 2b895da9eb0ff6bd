// The projects that this process knows. Only a deletion marker removes a project. A project stays
// known if a later reading does not contain it, or is older than the previous reading.

import { isDeepStrictEqual } from "node:util";
import type { MeteredProject, Project } from "../project.ts";
import { type ClashTaker, KeyMap } from "./key-map.ts";
import { lossAdvice, lossMark } from "./loss-mark.ts";

export type EntryNews =
  | { readonly kind: "project"; readonly revision: number; readonly project: Project }
  | { readonly kind: "deleted"; readonly revision: number }
  | { readonly kind: "damaged"; readonly revision: number }
  | { readonly kind: "unowned"; readonly revision: number }
  | { readonly kind: "lost"; readonly revision: number };

export interface Reading {
  readonly created: string;
  readonly lastSequence: number;
  readonly entries: ReadonlyMap<string, EntryNews>;
  readonly expected?: ReadonlySet<string>;
  readonly loss?: string | undefined;
  /** The projects of which the rules bucket has a version. */
  readonly withRules?: ReadonlySet<string>;
}

interface Known {
  readonly project: MeteredProject;
  readonly stated: Project;
  readonly revision: number;
  /**
   * The creation time of the bucket. It is necessary because revisions of different buckets cannot
   * be compared.
   */
  readonly created: string;
}

interface KnownProjectsOptions {
  readonly onClash: ClashTaker;
  /** Returns the project with its meter. It must also apply the quota to the meter. */
  readonly metered: (project: Project) => MeteredProject;
  readonly onDeleted: (projectId: string) => void;
}

const namedMax = 10;
const noIds: ReadonlySet<string> = new Set();

export class KnownProjects {
  readonly #known = new Map<string, Known>();
  readonly #metered: KnownProjectsOptions["metered"];
  readonly #onDeleted: KnownProjectsOptions["onDeleted"];
  readonly keys: KeyMap;
  readonly #missing = new Set<string>();
  readonly #damaged = new Set<string>();
  readonly #unowned = new Set<string>();
  readonly #undeleted = new Set<string>();
  readonly #deletions = new Deletions();
  /**
   * If the bucket has a lower last sequence than before, entries of unknown projects are held here
   * until it reaches that sequence again.
   */
  readonly #held = new Map<string, EntryNews>();
  #created = "";
  #loss: string | undefined;
  #consistentTo = { created: "", sequence: 0 };
  #readTo = 0;

  constructor({ onClash, metered, onDeleted }: KnownProjectsOptions) {
    this.keys = new KeyMap(onClash);
    this.#metered = metered;
    this.#onDeleted = onDeleted;
  }

  get size(): number {
    return this.#known.size;
  }

  byId(projectId: string): Project | undefined {
    return this.#known.get(projectId)?.stated;
  }

  get fault(): string | undefined {
    const { created, sequence } = this.#consistentTo;
    const isSame = created === this.#created;
    if (this.#lags)
      return `it ends at entry ${this.#readTo}, but entry ${sequence} was read earlier`;
    if (this.#undeleted.size > 0) {
      const names = firstOf(this.#undeleted).join(", ");
      return `it contains deleted projects (${names}): delete them again, or rotate their keys to restore them`;
    }
    if (this.#missing.size === 0)
      return this.lacksUnknown ? `${this.#loss}; ${lossAdvice}` : undefined;
    const count = this.#missing.size === 1 ? "1 project" : `${this.#missing.size} projects`;
    const why = isSame || created === "" ? "" : `: the bucket was recreated at ${this.#created}`;
    const named = this.missing.join(", ") + (this.#missing.size > namedMax ? ", …" : "");
    return `it lacks ${count} (${named}) without deletion markers${why}`;
  }

  get lacksUnknown(): boolean {
    return this.#loss !== undefined && this.#consistentTo.created === "";
  }

  get missing(): readonly string[] {
    return firstOf(this.#missing);
  }

  get hasDamaged(): boolean {
    return this.#damaged.size > 0;
  }

  get damaged(): readonly string[] {
    return firstOf(this.#damaged);
  }

  get unowned(): readonly string[] {
    return firstOf(this.#unowned);
  }

  bucketMissing(): void {
    for (const projectId of this.#known.keys()) this.#missing.add(projectId);
  }

  takeWhole({ created, lastSequence, entries, expected = noIds, loss }: Reading): void {
    // A different bucket, such as a restored one, has its own loss mark.
    if (created !== this.#created) this.#loss = undefined;
    this.#loss = loss ?? this.#loss;
    this.#created = created;
    this.#readTo = lastSequence;
    this.#damaged.clear();
    this.#unowned.clear();
    for (const projectId of expected) if (!entries.has(projectId)) this.#missing.add(projectId);
    for (const projectId of this.#known.keys())
      if (!entries.has(projectId)) this.#missing.add(projectId);
    this.#undeleted.clear();
    this.#held.clear();
    for (const [projectId, news] of entries) {
      if (this.#lags && news.kind === "project" && !this.#known.has(projectId))
        this.#held.set(projectId, news);
      else this.#apply(projectId, news);
    }
    this.#noteConsistent();
  }

  /** Replaces the object of a project after its rules were loaded. */
  renew(projectId: string): void {
    const known = this.#known.get(projectId);
    if (known === undefined) return;
    const project = this.#metered(known.stated);
    this.#known.set(projectId, { ...known, project });
    this.keys.put(project, known.project);
  }

  take(projectId: string, news: EntryNews): void {
    this.#readTo = Math.max(this.#readTo, news.revision);
    this.#held.delete(projectId);
    this.#apply(projectId, news);
    if (!this.#lags) {
      for (const [held, entry] of this.#held) this.#apply(held, entry);
      this.#held.clear();
    }
    this.#noteConsistent();
  }

  get #lags(): boolean {
    return (
      this.#consistentTo.created === this.#created && this.#readTo < this.#consistentTo.sequence
    );
  }

  #apply(projectId: string, news: EntryNews): void {
    if (projectId === lossMark) {
      this.#loss = news.kind === "lost" ? (this.#loss ?? "it has lost projects") : undefined;
      return;
    }
    if (news.kind === "unowned") return void this.#unowned.add(projectId);
    this.#unowned.delete(projectId);
    const before = this.#known.get(projectId);
    if (before?.created === this.#created && news.revision < before.revision) {
      this.#missing.add(projectId);
      return;
    }
    this.#missing.delete(projectId);
    // If the entry of a known project is damaged, the project's events are still accepted.
    if (news.kind === "damaged") return void this.#damaged.add(projectId);
    this.#damaged.delete(projectId);
    const from = { revision: news.revision, created: this.#created };
    if (news.kind === "deleted") {
      this.#undeleted.delete(projectId);
      this.#deletions.note(projectId, from);
      if (before === undefined) return;
      this.#known.delete(projectId);
      this.keys.remove(before.project);
      this.#onDeleted(projectId);
      return;
    }
    if (news.kind !== "project") return;
    if (this.#deletions.isUndoneBy(projectId, from)) {
      this.#undeleted.add(projectId);
      return;
    }
    this.#undeleted.delete(projectId);
    this.#deletions.forget(projectId);
    const { revision, project: stated } = news;
    // In a restored copy of the bucket, the same revision may have different content.
    const isSameEntry = before?.created === this.#created && before.revision === revision;
    if (isSameEntry && isDeepStrictEqual(before.stated, stated)) return;
    const project = this.#metered(stated);
    this.#known.set(projectId, { project, stated, revision, created: this.#created });
    this.keys.put(project, before?.project);
  }

  #noteConsistent(): void {
    if (this.fault === undefined)
      this.#consistentTo = { created: this.#created, sequence: this.#readTo };
  }
}

function firstOf(names: ReadonlySet<string>): string[] {
  const first: string[] = [];
  for (const name of names) {
    if (first.length === namedMax) break;
    first.push(name);
  }
  return first;
}

interface Deletion {
  readonly revision: number;
  readonly created: string;
}

const deletionsMax = 10_000;

export class Deletions {
  readonly #deletions = new Map<string, Deletion>();

  note(projectId: string, deletion: Deletion): void {
    if (this.isUndoneBy(projectId, deletion)) return;
    this.#deletions.delete(projectId);
    this.#deletions.set(projectId, deletion);
    if (this.#deletions.size > deletionsMax)
      this.#deletions.delete(this.#deletions.keys().next().value!);
  }

  forget(projectId: string): void {
    this.#deletions.delete(projectId);
  }

  isUndoneBy(projectId: string, { revision, created }: Deletion): boolean {
    const deletion = this.#deletions.get(projectId);
    return deletion !== undefined && deletion.created === created && revision < deletion.revision;
  }
}
