// The projects as they are known, and what a reading of the bucket may do to them. A project goes
// by a marker that says so and by nothing else: a reading that lacks one, or is older than what was
// read before, is a registry in trouble and no fact. Must not ask NATS.

import { isDeepStrictEqual } from "node:util";
import type { MeteredProject, Project } from "../../base/types.ts";
import { Deletions } from "./deletions.ts";
import { type ClashTaker, KeyMap } from "./key-map.ts";

/**
 * What an entry says: a project, that it was deleted, nothing that can be read, or something that
 * can be no project's.
 */
export type EntryNews =
  | { readonly kind: "project"; readonly revision: number; readonly project: Project }
  | { readonly kind: "deleted"; readonly revision: number }
  | { readonly kind: "damaged" | "nobodys"; readonly revision: number };

/** The whole of a bucket at one moment. */
export interface Reading {
  /** When the bucket was made. */
  readonly created: string;
  readonly lastSequence: number;
  /** By project id. */
  readonly entries: ReadonlyMap<string, EntryNews>;
  /** It must say something of these projects, since they have stored events. */
  readonly expected?: ReadonlySet<string>;
}

interface Known {
  readonly project: MeteredProject;
  /** As the entry says, without what is measured. */
  readonly stated: Project;
  readonly revision: number;
  /**
   * When the bucket was made that said so. Revisions of different buckets have nothing to do with
   * each other.
   */
  readonly created: string;
}

export interface KnownProjectsOptions {
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
  /** Those of whom the bucket says nothing, or only what is older. */
  readonly #missing = new Set<string>();
  /** Entries that cannot be read. */
  readonly #damaged = new Set<string>();
  /** Those that were deleted, and that the bucket has again as they were before. */
  readonly #undeleted = new Set<string>();
  readonly #deletions = new Deletions();
  /**
   * Not known before, out of a bucket that ends too early: whether they are new shows when it is as
   * far again.
   */
  readonly #held = new Map<string, EntryNews>();
  #created = "";
  /** How far the bucket had been read when it was last whole. */
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

  /**
   * What is wrong with the bucket as it was read, beside what was known before; undefined when
   * nothing is.
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
    if (this.#missing.size === 0) return undefined;
    const count = this.#missing.size === 1 ? "1 project" : `${this.#missing.size} projects`;
    const why = isSame || created === "" ? "" : `: the bucket was made anew at ${this.#created}`;
    const named = this.missing.join(", ") + (this.#missing.size > namedMax ? ", …" : "");
    return `it lacks ${count} that it had (${named}), and nothing in it says that they were deleted${why}`;
  }

  /** The first few that the bucket lacks, by id. */
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

  /** There is no bucket any more: it lacks all that are known. */
  bucketGone(): void {
    for (const projectId of this.#known.keys()) this.#missing.add(projectId);
  }

  /** A project that is known, and that the bucket says nothing of, stays as it is known. */
  takeWhole({ created, lastSequence, entries, expected = nobody }: Reading): void {
    this.#created = created;
    this.#readTo = lastSequence;
    this.#damaged.clear();
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

  /** One entry of the bucket that was read last. */
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
    const before = this.#known.get(projectId);
    if (before?.created === this.#created && news.revision < before.revision) {
      this.#missing.add(projectId);
      return;
    }
    this.#missing.delete(projectId);
    // One that was known goes on as it was: a slip in the bucket must not turn its events away.
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
    // Revisions come again where an older copy of the store was restored, with other content.
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

/** Not by a copy of all: requests may ask. */
function firstOf(names: ReadonlySet<string>): string[] {
  const first: string[] = [];
  for (const name of names) {
    if (first.length === namedMax) break;
    first.push(name);
  }
  return first;
}
