// The projects as this process knows them, and what a reading of the bucket may change about them.
// A project is removed only by a marker that says so. A reading that lacks a known project, or is
// older than what was read before, shows a registry in trouble, and removes nothing. Must not ask
// NATS.

import { isDeepStrictEqual } from "node:util";
import type { MeteredProject, Project } from "../project.ts";
import { Deletions } from "./deletions.ts";
import { type ClashTaker, KeyMap } from "./key-map.ts";
import { lossAdvice, lossMark } from "./loss-mark.ts";

/**
 * What an entry says: a project, that its project was deleted, nothing that can be read
 * (`damaged`), something that can belong to no project (`nobodys`), or that the bucket has lost
 * projects (`lost`).
 */
export type EntryNews =
  | { readonly kind: "project"; readonly revision: number; readonly project: Project }
  | { readonly kind: "deleted"; readonly revision: number }
  | { readonly kind: "damaged" | "nobodys" | "lost"; readonly revision: number };

/** The whole of a bucket at one moment. */
export interface Reading {
  /** When the bucket was made. */
  readonly created: string;
  readonly lastSequence: number;
  /** By project id. */
  readonly entries: ReadonlyMap<string, EntryNews>;
  /** The reading must have an entry of each of these projects, since they have stored events. */
  readonly expected?: ReadonlySet<string>;
  /** What the bucket has lost, as far as an empty one shows. */
  readonly loss?: string | undefined;
}

interface Known {
  readonly project: MeteredProject;
  /** The project as its entry says, without its meter. */
  readonly stated: Project;
  readonly revision: number;
  /** When the bucket of that entry was made. Revisions of different buckets cannot be compared. */
  readonly created: string;
}

interface KnownProjectsOptions {
  readonly onClash: ClashTaker;
  /** The project with its meter, which holds it to its quota from now on. */
  readonly metered: (project: Project) => MeteredProject;
  readonly onGone: (projectId: string) => void;
}

const namedMax = 10;
const nobody: ReadonlySet<string> = new Set();

export class KnownProjects {
  readonly #known = new Map<string, Known>();
  readonly #metered: KnownProjectsOptions["metered"];
  readonly #onGone: KnownProjectsOptions["onGone"];
  readonly keys: KeyMap;
  /** Projects of which the bucket says nothing, or only something older than what is known. */
  readonly #missing = new Set<string>();
  /** Entries that cannot be read. */
  readonly #damaged = new Set<string>();
  /** Entries that can be no project's. */
  readonly #nobodys = new Set<string>();
  /** Projects that were deleted, and that the bucket has again as they were before. */
  readonly #undeleted = new Set<string>();
  readonly #deletions = new Deletions();
  /**
   * Entries of unknown projects, from a bucket that ends earlier than it once did. Whether these
   * projects are new shows only when the bucket has come as far again.
   */
  readonly #held = new Map<string, EntryNews>();
  #created = "";
  /**
   * What the bucket has lost, until an operator says that every project is back: projects that are
   * added again do not tell whether others are still to come.
   */
  #loss: string | undefined;
  /** Up to which sequence the bucket had been read when nothing was wrong with it last. */
  #wholeTo = { created: "", sequence: 0 };
  #readTo = 0;

  constructor({ onClash, metered, onGone }: KnownProjectsOptions) {
    this.keys = new KeyMap(onClash);
    this.#metered = metered;
    this.#onGone = onGone;
  }

  get size(): number {
    return this.#known.size;
  }

  byId(projectId: string): Project | undefined {
    return this.#known.get(projectId)?.stated;
  }

  /**
   * What is wrong with the bucket as it was read, compared with what was known before; undefined
   * when nothing is wrong.
   */
  get fault(): string | undefined {
    const { created, sequence } = this.#wholeTo;
    const isSame = created === this.#created;
    if (this.#isBehind)
      return `it ends at entry ${this.#readTo}, and was read up to ${sequence} before`;
    if (this.#undeleted.size > 0) {
      const names = firstOf(this.#undeleted).join(", ");
      return `it has projects again that were deleted (${names}): remove them again, or rotate their keys to have them back`;
    }
    if (this.#missing.size === 0)
      return this.lacksUnknown ? `${this.#loss}; ${lossAdvice}` : undefined;
    const count = this.#missing.size === 1 ? "1 project" : `${this.#missing.size} projects`;
    const why = isSame || created === "" ? "" : `: the bucket was made anew at ${this.#created}`;
    const named = this.missing.join(", ") + (this.#missing.size > namedMax ? ", …" : "");
    return `it lacks ${count} that it had (${named}), and nothing in it says that they were deleted${why}`;
  }

  /**
   * Whether the bucket may lack projects of which this process has never heard. One that has once
   * read a whole bucket has heard of all, and misses them by name.
   */
  get lacksUnknown(): boolean {
    return this.#loss !== undefined && this.#wholeTo.created === "";
  }

  /** The ids of the first few projects that the bucket lacks. */
  get missing(): readonly string[] {
    return firstOf(this.#missing);
  }

  get hasDamaged(): boolean {
    return this.#damaged.size > 0;
  }

  /** The first few entries that cannot be read. */
  get damaged(): readonly string[] {
    return firstOf(this.#damaged);
  }

  /** The first few entries that can be no project's. */
  get nobodys(): readonly string[] {
    return firstOf(this.#nobodys);
  }

  /** The bucket is gone, and with it the entries of all known projects. */
  bucketGone(): void {
    for (const projectId of this.#known.keys()) this.#missing.add(projectId);
  }

  /**
   * Takes a reading of the whole bucket. A known project that the bucket says nothing of stays as
   * it is known.
   */
  takeWhole({ created, lastSequence, entries, expected = nobody, loss }: Reading): void {
    // Another bucket, as one that was restored, says for itself whether it lacks anything.
    if (created !== this.#created) this.#loss = undefined;
    this.#loss = loss ?? this.#loss;
    this.#created = created;
    this.#readTo = lastSequence;
    this.#damaged.clear();
    this.#nobodys.clear();
    for (const projectId of expected) if (!entries.has(projectId)) this.#missing.add(projectId);
    for (const projectId of this.#known.keys())
      if (!entries.has(projectId)) this.#missing.add(projectId);
    this.#undeleted.clear();
    this.#held.clear();
    for (const [projectId, news] of entries) {
      if (this.#isBehind && news.kind === "project" && !this.#known.has(projectId))
        this.#held.set(projectId, news);
      else this.#apply(projectId, news);
    }
    this.#noteWhole();
  }

  /** Takes one more entry of the bucket that was read last. */
  take(projectId: string, news: EntryNews): void {
    this.#readTo = Math.max(this.#readTo, news.revision);
    this.#held.delete(projectId);
    this.#apply(projectId, news);
    if (!this.#isBehind) this.#applyHeld();
    this.#noteWhole();
  }

  get #isBehind(): boolean {
    return this.#wholeTo.created === this.#created && this.#readTo < this.#wholeTo.sequence;
  }

  #applyHeld(): void {
    for (const [projectId, news] of this.#held) this.#apply(projectId, news);
    this.#held.clear();
  }

  #apply(projectId: string, news: EntryNews): void {
    if (projectId === lossMark) {
      this.#loss = news.kind === "lost" ? (this.#loss ?? "it has lost projects") : undefined;
      return;
    }
    if (news.kind === "nobodys") return void this.#nobodys.add(projectId);
    this.#nobodys.delete(projectId);
    const before = this.#known.get(projectId);
    if (before?.created === this.#created && news.revision < before.revision) {
      this.#missing.add(projectId);
      return;
    }
    this.#missing.delete(projectId);
    // A known project goes on as it was: a damaged entry must not turn its events away.
    if (news.kind === "damaged") return void this.#damaged.add(projectId);
    this.#damaged.delete(projectId);
    const from = { revision: news.revision, created: this.#created };
    if (news.kind === "deleted") {
      this.#undeleted.delete(projectId);
      this.#deletions.note(projectId, from);
      if (before === undefined) return;
      this.#known.delete(projectId);
      this.keys.remove(before.project);
      this.#onGone(projectId);
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
    // The revision alone does not tell: where an older copy of the store was restored, the same
    // revision can come again with other content.
    const isSameEntry = before?.created === this.#created && before.revision === revision;
    if (isSameEntry && isDeepStrictEqual(before.stated, stated)) return;
    const project = this.#metered(stated);
    this.#known.set(projectId, { project, stated, revision, created: this.#created });
    this.keys.put(project, before?.project);
  }

  #noteWhole(): void {
    if (this.fault === undefined)
      this.#wholeTo = { created: this.#created, sequence: this.#readTo };
  }
}

/** Does not copy the whole set, since a request may ask for this. */
function firstOf(names: ReadonlySet<string>): string[] {
  const first: string[] = [];
  for (const name of names) {
    if (first.length === namedMax) break;
    first.push(name);
  }
  return first;
}
