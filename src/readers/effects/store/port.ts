// The interface to a database. sqlite/ and postgres/ implement it.

import type {
  ActiveIdsRow,
  ActivityRow,
  Commit,
  GroupRow,
  IncidentRow,
  LargePropertiesRow,
  LinkRow,
  MemberRow,
  OutboxRow,
  Position,
  RejectedRow,
  SpikeRow,
  StoredOutboxRow,
  UsageDelta,
} from "../types.ts";
import type { DumpKind } from "./dump.ts";

/** Another writer exists, or the database was restored to an older state. */
export class FencedError extends Error {
  override name = "FencedError";
}

export type GroupName = Pick<GroupRow, "projectId" | "type" | "key">;

/** The database as the single writer uses it. Methods reject if the database is unreachable. */
export interface EffectsStore {
  readonly reader: EffectsReader;
  /** Takes the writer's lock, and upgrades the tables. Rejects if another writer has the lock. */
  open(): Promise<void>;
  holdsLock(): Promise<boolean>;
  /** Stores the owner's prefix of the stream names, unless the database has an owner. */
  bindTo(prefix: string): Promise<void>;
  /** Returns the number of the last commit, or 0. Rolls back an incomplete commit. */
  lastCommit(): Promise<number>;
  positions(): Promise<readonly Position[]>;
  /**
   * Returns the rows of the ids that exist, and all rows between each id and its person. Rejects
   * with a TooLargeError if the properties exceed 32 MiB.
   *
   * During a commit, the rows may be older than the commit.
   */
  members(projectId: string, distinctIds: readonly string[]): Promise<readonly MemberRow[]>;
  groups(names: readonly GroupName[]): Promise<readonly GroupRow[]>;
  groupTypes(
    projectIds: readonly string[],
  ): Promise<readonly { projectId: string; type: string }[]>;
  activeIds(days: readonly { projectId: string; day: string }[]): Promise<readonly ActiveIdsRow[]>;
  activity(projectIds: readonly string[]): Promise<readonly ActivityRow[]>;
  largeProperties(): Promise<readonly LargePropertiesRow[]>;
  /**
   * Writes one transaction. Rejects with a FencedError if `after` is not the last commit.
   *
   * More parts follow a commit with `isPart`. Look-ups see the written parts, but readers do not.
   * If a part fails, nothing is stored.
   */
  commit(commit: Commit): Promise<void>;
  outbox(limit: number, afterId: number): Promise<readonly StoredOutboxRow[]>;
  published(messageIds: readonly string[]): Promise<void>;
  trimOutbox(rowsMax: number): Promise<number>;
  close(): Promise<void>;
}

export interface Person {
  readonly uuid: string;
  readonly mainDistinctId: string;
  /** The person's ids in the order in which they were first seen, at most 100. */
  readonly distinctIds: readonly string[];
  readonly distinctIdsTotal: number;
  /** The properties: a JSON object with keys sorted by code unit and values as sent. */
  readonly propertiesJson: string;
  readonly known: boolean;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  readonly version: number;
  /**
   * The uuids of the person's ids except the first, at most 100. Before a merge, each may have been
   * the uuid of a separate person.
   */
  readonly mergedFrom: readonly string[];
}

export type Link = Omit<LinkRow, "projectId" | "place">;

export interface Group {
  readonly type: string;
  readonly key: string;
  readonly propertiesJson: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly version: number;
}

export type UsageDay = Omit<UsageDelta, "projectId">;

export interface Page {
  readonly after: string | undefined;
  readonly limit: number;
  /**
   * Maximum size of the page: the characters of all properties, plus `idBytes` for each distinct
   * id. A page has at least one result.
   */
  readonly bytesMax: number;
}

/** The size that a distinct id counts on a page, because each id needs a look-up. */
export const idBytes = 200;

/** Maximum rows of an answer, enough for eleven years. */
export const usageRowsMax = 50_000;
export const projectsMax = 1_000;

export interface PageOf<T> {
  readonly results: readonly T[];
  readonly next: string | undefined;
}

export type AppliedStream = Pick<
  Position,
  "stream" | "lane" | "partition" | "epoch" | "sequence" | "watermarkMs"
>;

export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
}

export interface ReachedStream extends Pick<Position, "stream" | "epoch" | "created" | "sequence"> {
  readonly messageId: string | undefined;
}

export interface ProjectIds {
  readonly projectId: string;
  readonly distinctIds: readonly string[];
}

/** An answer with a `version` that changes if the answer may have changed. */
export interface Versioned<Answer> {
  readonly version: string;
  readonly answer: Answer;
}

/** Reads committed data while the writer works. Each answer is from one snapshot. */
export interface EffectsReader {
  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined>;
  /** Returns the person. The uuid of a merged person leads to the surviving person. */
  personByUuid(projectId: string, uuid: string): Promise<Person | undefined>;
  persons(projectId: string, page: Page): Promise<PageOf<Person>>;
  links(projectId: string, uuid: string): Promise<readonly Link[] | undefined>;
  group(name: GroupName): Promise<Group | undefined>;
  groups(projectId: string, type: string, page: Page): Promise<PageOf<Group>>;
  groupTypes(projectId: string): Promise<readonly string[]>;
  usage(projectId: string, days: { from: string; to: string }): Promise<readonly UsageDay[]>;
  activePeople(
    projectId: string,
    days: { from: string; to: string },
  ): Promise<readonly { day: string; estimate: number }[]>;
  /** Returns spikes that started at or after the time, oldest first. */
  spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>>;
  rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]>;
  incidents(limit: number): Promise<readonly IncidentRow[]>;
  unpublished(): Promise<readonly OutboxRow[]>;
  installation(): Promise<string | undefined>;
  positions(): Promise<readonly Position[]>;
  applied(): Promise<readonly AppliedStream[]>;
  reached(messages: readonly StreamMessage[]): Promise<Versioned<readonly ReachedStream[]>>;
  /** Returns uuids in the order of projects and ids; null for an id without a person. */
  personUuids(ids: readonly ProjectIds[]): Promise<Versioned<readonly (string | null)[]>>;
  totals(): Promise<Totals>;
  projects(): Promise<readonly string[]>;
  hasWriter(): Promise<boolean>;
  /** Yields sorted lines, equal in every store and for every batching. Default: `all`. */
  dump(kind?: DumpKind): AsyncIterable<string>;
}

export interface Totals {
  readonly persons: number;
  readonly groups: number;
  readonly openSpikes: number;
  readonly rejected: number;
  readonly incidents: number;
}
