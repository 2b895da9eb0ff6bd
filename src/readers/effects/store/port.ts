// Defines the interface to a database. sqlite/ and postgres/ implement it, and the same tests run
// for both. A commit is stored completely or not at all. A reader sees the state between two
// commits.

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
 * Reports that the store's last commit is not the one that this writer expects: another writer
 * exists, or the database was restored to an older state.
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
 * The database as the single writer uses it. Every method rejects if the database is unreachable,
 * and writes nothing partially.
 */
export interface EffectsStore {
  readonly reader: EffectsReader;
  /**
   * Takes the writer's lock (a file lock or an advisory lock), and creates or upgrades the tables.
   * If another writer holds the lock, rejects with a message for the operator, without waiting.
   */
  open(): Promise<void>;
  /** Returns whether this writer still holds the lock that `open` took. */
  holdsLock(): Promise<boolean>;
  /**
   * Stores the prefix of the stream names as that of the database's owner, unless the database has
   * an owner.
   */
  bindTo(prefix: string): Promise<void>;
  /**
   * Returns the number of the last commit; 0 if no commit exists. Rolls back an incomplete commit.
   */
  lastCommit(): Promise<number>;
  positions(): Promise<readonly Position[]>;
  /**
   * Returns the rows of the ids, and all rows between each id and its person. Ids without a row are
   * omitted. During a commit, the rows may be from before the commit, but all are of one moment.
   * Rejects with a TooLargeError if the properties exceed 32 MiB; the caller must then request
   * fewer ids.
   */
  members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]>;
  /**
   * Returns the rows of the groups that exist. Reads during a commit, and limits the properties, as
   * `members` does.
   */
  groups(names: readonly GroupName[]): Promise<readonly GroupRow[]>;
  /** Returns the group types of the projects. Reads during a commit as `members` does. */
  groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]>;
  activeIds(days: readonly { projectId: string; day: string }[]): Promise<readonly ActiveIdsRow[]>;
  /** Returns the stored states of spike detection of the projects. */
  activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]>;
  largeProperties(): Promise<readonly LargePropertiesRow[]>;
  /**
   * Writes one transaction. Rejects with a FencedError if `after` is not the last commit. If
   * `isPart`, other parts follow: look-ups of rows see the written parts, but readers do not until
   * the commit is complete. If a part or the process fails, nothing is stored.
   */
  commit(commit: Commit): Promise<void>;
  /** Returns the oldest outbox rows whose ids are greater than `afterId`. */
  outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]>;
  published(messageIds: readonly string[]): Promise<void>;
  /**
   * Deletes the oldest outbox rows, except the newest `rowsMax`. Returns the number of deleted
   * rows.
   */
  trimOutbox(rowsMax: number): Promise<number>;
  close(): Promise<void>;
}

export interface Person {
  readonly uuid: string;
  readonly mainDistinctId: string;
  /** The distinct ids in the order in which they were first seen, at most 100. */
  readonly distinctIds: readonly string[];
  readonly distinctIdsTotal: number;
  /** The properties as a JSON object, keys sorted by code unit, values as they were sent. */
  readonly propertiesJson: string;
  readonly known: boolean;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  readonly version: number;
  /**
   * The uuids of the person's other ids, at most 100. Each may have been reported as a separate
   * person before a merge.
   */
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
  /** The `next` of the previous page; undefined for the first page. */
  readonly after: string | undefined;
  readonly limit: number;
  /**
   * Maximum size of the page: the characters of all properties, plus `idBytes` for each distinct id
   * of a person, including the ids that are not returned. A page ends early before it exceeds this
   * size, but has at least one result if one exists.
   */
  readonly bytesMax: number;
}

/** Size that each distinct id adds to a page, because each id needs a look-up. */
export const idBytes = 200;

/** Maximum number of usage rows in an answer: eleven years of all lanes and classes. */
export const usageRowsMax = 50_000;

export interface PageOf<T> {
  readonly results: readonly T[];
  readonly next: string | undefined;
}

/** The short columns of a stream's position. */
export type AppliedStream = Pick<
  Position,
  "stream" | "lane" | "partition" | "epoch" | "sequence" | "watermarkMs"
>;

/** A message of a stream, identified by its sequence. */
export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

/** The position of a stream, and the message id at the requested sequence. */
export interface ReachedStream extends Pick<Position, "stream" | "epoch" | "created" | "sequence"> {
  /** The id of the requested message; undefined if the trail no longer contains it. */
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** An answer of one moment, with a text that changes if the answer may have changed. */
export interface Versioned<Answer> {
  readonly version: string;
  readonly answer: Answer;
}

/**
 * Reads committed data while the writer works. Each answer is of one moment and never shows half a
 * merge.
 */
export interface EffectsReader {
  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined>;
  /** Returns the person with the uuid. Also accepts a uuid that was reported before a merge. */
  personByUuid(projectId: string, uuid: string): Promise<Person | undefined>;
  persons(projectId: string, page: Page): Promise<PageOf<Person>>;
  /**
   * Returns the links of all ids of the person, oldest first; undefined if the person does not
   * exist.
   */
  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined>;
  group(name: GroupName): Promise<Group | undefined>;
  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>>;
  groupTypes(projectId: string): Promise<readonly string[]>;
  /** Returns the oldest rows of the inclusive range of days, at most `usageRowsMax`. */
  usage(projectId: string, days: { from: string; to: string }): Promise<readonly UsageDay[]>;
  activePeople(
    projectId: string,
    days: { from: string; to: string },
  ): Promise<readonly { day: string; estimate: number }[]>;
  /** Returns a page of spikes that started after the time, oldest first. */
  spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>>;
  rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]>;
  incidents(limit: number): Promise<readonly IncidentRow[]>;
  /** Returns the rows of the outbox, oldest first. */
  unpublished(): Promise<readonly OutboxRow[]>;
  /** Returns the first part of the stream names; undefined if it is not stored yet. */
  installation(): Promise<string | undefined>;
  positions(): Promise<readonly Position[]>;
  /**
   * Returns the short columns of all positions. Read with every answer, and often while clients
   * wait.
   */
  applied(): Promise<readonly AppliedStream[]>;
  /** Returns the positions of the streams. Streams without applied messages are omitted. */
  reached(messages: readonly StreamMessage[]): Promise<Versioned<readonly ReachedStream[]>>;
  /**
   * Returns the uuids of the persons of the ids, project by project in the order of the ids; null
   * if an id has no person.
   */
  personUuids(ids: readonly ProjectIds[]): Promise<Versioned<readonly (string | null)[]>>;
  /** Returns the totals for metrics and the live page. */
  totals(): Promise<Totals>;
  /** Returns the first 1,000 projects with applied events, sorted. */
  projects(): Promise<readonly string[]>;
  /** Returns whether a writer has the database open now, in any process. */
  hasWriter(): Promise<boolean>;
  /**
   * Yields the state as sorted lines of text, without versions and positions. The lines are the
   * same in every store and for every batching of the same frames. Default: `all`.
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
