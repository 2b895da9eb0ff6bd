// The interface to a database. sqlite/ and postgres/ implement it; the same tests run over both. A
// commit is stored completely or not at all; a reader sees the state between two commits.

import type { Lane } from "../../../platform/base/lane.ts";
import type {
  ActiveIdsRow,
  ActivityRow,
  Commit,
  GroupRow,
  IncidentRow,
  LargePropertiesRow,
  MemberRow,
  OutboxRow,
  Position,
  RejectedRow,
  SpikeRow,
  StoredOutboxRow,
  UsageClass,
} from "../types.ts";
import type { DumpKind } from "./dump.ts";

/**
 * The last commit of the store is not the one that this writer expects: there is a second writer,
 * or the database was restored to an older state.
 */
export class FencedError extends Error {
  override name = "FencedError";
}

export interface GroupName {
  readonly projectId: string;
  readonly type: string;
  readonly key: string;
}

/**
 * For the one writer. Every method rejects when the database is unreachable; nothing is partly
 * written.
 */
export interface EffectsStore {
  readonly reader: EffectsReader;
  /**
   * Creates or upgrades the tables. Takes the writer's lock (a file lock or an advisory lock):
   * rejects with a plain message, without waiting, when another writer has it.
   */
  open(): Promise<void>;
  /** Whether no other writer can have the lock that `open` took. */
  holdsLock(): Promise<boolean>;
  /** Stores the prefix of the owner's stream names, unless the database has an owner. */
  bindTo(prefix: string): Promise<void>;
  /**
   * The number of the last commit; 0 at first. Rolls back a commit of which only parts are written.
   */
  lastCommit(): Promise<number>;
  positions(): Promise<readonly Position[]>;
  /**
   * The rows of these ids, and all rows on the way from each to its person. Ids without a row are
   * omitted. During a commit, the rows may be those from before it, all of one moment; the same
   * applies to `groups` and `groupTypes`. Rejects with a TooLargeError when their properties exceed
   * 32 MiB: then request fewer. `groups` does so too.
   */
  members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]>;
  groups(names: readonly GroupName[]): Promise<readonly GroupRow[]>;
  groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]>;
  activeIds(days: readonly { projectId: string; day: string }[]): Promise<readonly ActiveIdsRow[]>;
  /** The stored state of spike detection for these projects. */
  activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]>;
  largeProperties(): Promise<readonly LargePropertiesRow[]>;
  /**
   * Writes one transaction. Rejects with a FencedError when `after` is not the last commit. Parts
   * may be written before it: look-ups of rows see them, and readers do not until the commit is
   * complete. If a part or the process fails, nothing is stored.
   */
  commit(commit: Commit): Promise<void>;
  /** The oldest rows of the outbox after that id. */
  outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]>;
  published(messageIds: readonly string[]): Promise<void>;
  /**
   * Deletes the oldest rows of the outbox so that `rowsMax` stay. Returns the number of deleted
   * rows.
   */
  trimOutbox(rowsMax: number): Promise<number>;
  close(): Promise<void>;
}

export interface Person {
  readonly uuid: string;
  readonly mainDistinctId: string;
  /** At most 100, in the order in which they were first seen. */
  readonly distinctIds: readonly string[];
  readonly distinctIdsTotal: number;
  /** JSON text of an object, keys sorted by code unit, values as they were sent. */
  readonly propertiesJson: string;
  readonly known: boolean;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  readonly version: number;
  /** The uuids of its other ids, at most 100: each may have been shown as a person of its own. */
  readonly mergedFrom: readonly string[];
}

export interface Link {
  readonly a: string;
  readonly b: string;
  readonly kind: string;
  readonly atMs: number;
  readonly eventUuid: string;
  readonly outcome: string;
}

export interface Group {
  readonly type: string;
  readonly key: string;
  readonly propertiesJson: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly version: number;
}

export interface UsageDay {
  readonly day: string;
  readonly lane: Lane;
  readonly class: UsageClass;
  readonly events: number;
  readonly duplicates: number;
}

export interface Page {
  /** The `next` of the previous page; undefined: from the start. */
  readonly after: string | undefined;
  readonly limit: number;
  /**
   * A page ends early, with `next`, before its properties exceed this size, where each distinct id
   * of a person, shown or not, counts `idBytes`; but it has at least one result, if there is one.
   */
  readonly bytesMax: number;
}

/** The size that an id counts in a page: each needs a look-up. */
export const idBytes = 200;

/** Eleven years of all lanes and classes. */
export const usageRowsMax = 50_000;

export interface PageOf<T> {
  readonly results: readonly T[];
  readonly next: string | undefined;
}

/** The position of a stream. */
export type AppliedStream = Pick<
  Position,
  "stream" | "lane" | "partition" | "epoch" | "sequence" | "watermarkMs"
>;

/** A message of a stream, by its number. */
export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** The position of a stream, and the message id of the requested number. */
export interface ReachedStream extends Pick<Position, "stream" | "epoch" | "created" | "sequence"> {
  /** The id of the requested message; undefined: it is no longer remembered. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** An answer for one moment, with a text that changes when the answer may have changed. */
export interface Versioned<Answer> {
  readonly version: string;
  readonly answer: Answer;
}

/**
 * Reads committed data. Each answer is of one moment, and never shows half a merge. Keeps answering
 * while the writer works.
 */
export interface EffectsReader {
  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined>;
  /** Also accepts a uuid that was shown before a merge. */
  personByUuid(projectId: string, uuid: string): Promise<Person | undefined>;
  persons(projectId: string, page: Page): Promise<PageOf<Person>>;
  /** The links of all ids of the person, oldest first; undefined: no such person. */
  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined>;
  group(name: GroupName): Promise<Group | undefined>;
  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>>;
  groupTypes(projectId: string): Promise<readonly string[]>;
  /** Days are inclusive. The oldest rows, at most `usageRowsMax`. */
  usage(projectId: string, days: { from: string; to: string }): Promise<readonly UsageDay[]>;
  activePeople(
    projectId: string,
    days: { from: string; to: string },
  ): Promise<readonly { day: string; estimate: number }[]>;
  /** Oldest first. */
  spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>>;
  rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]>;
  incidents(limit: number): Promise<readonly IncidentRow[]>;
  /** The rows of the outbox, oldest first. */
  unpublished(): Promise<readonly OutboxRow[]>;
  /** The first part of the stream names, once it is stored. */
  installation(): Promise<string | undefined>;
  positions(): Promise<readonly Position[]>;
  /** Only short columns: read with every answer, and often while clients wait. */
  applied(): Promise<readonly AppliedStream[]>;
  /** Streams without applied messages are omitted. */
  reached(messages: readonly StreamMessage[]): Promise<Versioned<readonly ReachedStream[]>>;
  /**
   * The uuids by which the persons of these ids are shown, project after project in the order of
   * the ids; null: the id has no person.
   */
  personUuids(ids: readonly ProjectIds[]): Promise<Versioned<readonly (string | null)[]>>;
  /** For metrics and the live page. */
  totals(): Promise<Totals>;
  /** The projects with applied events, sorted: the first 1,000. */
  projects(): Promise<readonly string[]>;
  /** Whether a writer has the database open now, in any process. */
  hasWriter(): Promise<boolean>;
  /**
   * The state as sorted lines of text, the same from every store and for every batching of the same
   * frames. Without versions and positions. Default: all of it.
   */
  dump(kind?: DumpKind): AsyncIterable<string>;
}

export interface Totals {
  readonly persons: number;
  readonly groups: number;
  readonly openSpikes: number;
  readonly rejected: number;
  readonly incidents: number;
}
