// The port to a database. sqlite/ and postgres/ implement it; the same tests run over both. What
// was committed is there in whole, or not at all; a reader sees the state between two commits.

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
 * The last commit of the store is another than this writer knows: there is a second writer, or the
 * database was put back to an older state.
 */
export class FencedError extends Error {
  override name = "FencedError";
}

export interface GroupName {
  readonly projectId: string;
  readonly type: string;
  readonly key: string;
}

/** For the one writer. Every method rejects when the database is away; nothing is half written. */
export interface EffectsStore {
  readonly reader: EffectsReader;
  /**
   * Makes the tables, or brings them up to date. Takes the writer's lock (a file lock; an advisory
   * lock): rejects with a plain message when another writer has it, without waiting.
   */
  open(): Promise<void>;
  /** Whether no other writer can have the lock that `open` took. */
  holdsLock(): Promise<boolean>;
  /** Notes whose database it is, by what the names of its streams begin with, if nobody's yet. */
  bindTo(prefix: string): Promise<void>;
  /** The number of the last commit; 0 at first. Undoes one of which only parts are written. */
  lastCommit(): Promise<number>;
  positions(): Promise<readonly Position[]>;
  /**
   * The rows of these ids, and all rows on the way from each to its person. Ids without a row are
   * left out. While a commit is on its way, the rows may be those from before it, all of one
   * moment; the same goes for `groups` and `groupTypes`. Rejects with a TooLargeError when their
   * properties come to more than 32 MiB: then fewer are to be asked for; and so does `groups`.
   */
  members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]>;
  groups(names: readonly GroupName[]): Promise<readonly GroupRow[]>;
  groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]>;
  activeIds(days: readonly { projectId: string; day: string }[]): Promise<readonly ActiveIdsRow[]>;
  /** The memory of spike detection, of these projects. */
  activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]>;
  largeProperties(): Promise<readonly LargePropertiesRow[]>;
  /**
   * One transaction. Rejects with a FencedError when `after` is not the last commit. Parts of it
   * may go before it: they are seen by who looks up rows, and by nobody else until all of it is
   * there. Where one of them or the process fails, there is nothing of it.
   */
  commit(commit: Commit): Promise<void>;
  /** The oldest rows of the outbox behind that id, and their removal once they are published. */
  outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]>;
  published(messageIds: readonly string[]): Promise<void>;
  /** Removes the oldest rows of the outbox, so that so many stay. Returns how many went. */
  trimOutbox(rowsMax: number): Promise<number>;
  close(): Promise<void>;
}

export interface Person {
  readonly uuid: string;
  readonly mainDistinctId: string;
  /** At most 100, those first seen first. */
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
  /** As the last page's `next` said; undefined: from the beginning. */
  readonly after: string | undefined;
  readonly limit: number;
  /**
   * A page ends early, with `next`, before its properties come to more than this, where each
   * distinct id of a person, shown or not, counts `idBytes`; but it has at least one result, if
   * there is one.
   */
  readonly bytesMax: number;
}

/** What an id counts in a page: they are looked for one by one. */
export const idBytes = 200;

/** Eleven years of all lanes and classes. */
export const usageRowsMax = 50_000;

export interface PageOf<T> {
  readonly results: readonly T[];
  readonly next: string | undefined;
}

/** How far a stream is applied. */
export type AppliedStream = Pick<
  Position,
  "stream" | "lane" | "partition" | "epoch" | "sequence" | "watermarkMs"
>;

/** A message of a stream, by its number. */
export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** How far a stream is applied, and what message has the number that was asked about. */
export interface ReachedStream extends Pick<Position, "stream" | "epoch" | "created" | "sequence"> {
  /** Undefined: it is not among the newest that are remembered. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** An answer of one moment, with a text that is another one once there may be another answer. */
export interface Versioned<Answer> {
  readonly version: string;
  readonly answer: Answer;
}

/**
 * Reads what is committed. Each answer is of one moment, and never shows half a merge. Keeps
 * answering while the writer works.
 */
export interface EffectsReader {
  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined>;
  /** Also by a uuid that was shown once. */
  personByUuid(projectId: string, uuid: string): Promise<Person | undefined>;
  persons(projectId: string, page: Page): Promise<PageOf<Person>>;
  /** The links of all ids of the person, oldest first; undefined: no such person. */
  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined>;
  group(name: GroupName): Promise<Group | undefined>;
  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>>;
  groupTypes(projectId: string): Promise<readonly string[]>;
  /** Days are inclusive. The oldest rows, `usageRowsMax` of them at most. */
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
  /** What the names of its streams begin with, once that is noted. */
  installation(): Promise<string | undefined>;
  positions(): Promise<readonly Position[]>;
  /** The same without what is long: asked with every answer, and often while somebody waits. */
  applied(): Promise<readonly AppliedStream[]>;
  /** Streams of which nothing is applied are left out. */
  reached(messages: readonly StreamMessage[]): Promise<Versioned<readonly ReachedStream[]>>;
  /**
   * The uuids by which the persons of these ids are shown, project after project in the order of
   * the ids; null: nobody has the id.
   */
  personUuids(ids: readonly ProjectIds[]): Promise<Versioned<readonly (string | null)[]>>;
  /** For metrics and the live page. */
  totals(): Promise<Totals>;
  /** Those of which events are applied, sorted: the first 1,000. */
  projects(): Promise<readonly string[]>;
  /** Whether a writer has the database open now, in any process. */
  hasWriter(): Promise<boolean>;
  /**
   * The state as lines of text, sorted, the same from every store and for every way in which the
   * same frames may have been batched. Has no versions or positions. Default: all of it.
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
