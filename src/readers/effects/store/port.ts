// The interface to a database. The folders sqlite/ and postgres/ implement it.

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

/** Thrown if another writer exists, or if the database was restored to an older state. */
export class FencedError extends Error {
  override name = "FencedError";
}

export type GroupName = Pick<GroupRow, "projectId" | "type" | "key">;

/** The database as its single writer uses it. All methods reject if the database is unreachable. */
export interface EffectsStore {
  readonly reader: EffectsReader;
  /** Acquires the writer's lock and upgrades the tables. Rejects if another writer has the lock. */
  open(): Promise<void>;
  holdsLock(): Promise<boolean>;
  /** Stores the prefix of the owner's stream names, unless the database already has an owner. */
  bindTo(prefix: string): Promise<void>;
  /** Returns the number of the last commit, or 0. Rolls back an incomplete commit. */
  lastCommit(): Promise<number>;
  positions(): Promise<readonly Position[]>;
  /**
   * Returns the rows of the ids that exist. For a merged id, also returns all rows up to the row of
   * its person. Rejects with a TooLargeError if the properties exceed 32 MiB.
   *
   * During a commit, this method may return the rows from before the commit.
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
   * If the commit has `isPart`, the caller writes the rest of the transaction with further calls.
   * Lookups return rows of the parts that are already written, but readers do not see them. If a
   * part fails, nothing is stored.
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
  /** At most 100 ids of the person, in the order in which they were first seen. */
  readonly distinctIds: readonly string[];
  readonly distinctIdsTotal: number;
  /** The properties as a JSON object. Keys are sorted by code unit, and values are as sent. */
  readonly propertiesJson: string;
  readonly known: boolean;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  readonly version: number;
  /**
   * The uuids of at most 100 ids of the person, without the first id. Before a merge, such an id
   * may have belonged to a different person.
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
   * Maximum size of the page. The size is the number of characters of all properties, plus
   * `idBytes` for each distinct id. A page has at least one result.
   */
  readonly bytesMax: number;
}

/** The size that each distinct id adds to a page, because each id needs a lookup. */
export const idBytes = 200;

/** Maximum number of rows of a response. It is enough for eleven years. */
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

/** Reads committed data while the writer is running. Each answer comes from one snapshot. */
export interface EffectsReader {
  personByDistinctId(projectId: string, distinctId: string): Promise<Person | undefined>;
  /** Returns the person with this uuid. If the person was merged, returns the surviving person. */
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
  /** Returns the spikes that started at or after `fromMs`, oldest first. */
  spikes(projectId: string, fromMs: number, page: Page): Promise<PageOf<SpikeRow>>;
  rejected(projectId: string | undefined, limit: number): Promise<readonly RejectedRow[]>;
  incidents(limit: number): Promise<readonly IncidentRow[]>;
  unpublished(): Promise<readonly OutboxRow[]>;
  installation(): Promise<string | undefined>;
  positions(): Promise<readonly Position[]>;
  applied(): Promise<readonly AppliedStream[]>;
  reached(messages: readonly StreamMessage[]): Promise<readonly ReachedStream[]>;
  /** Returns uuids in the order of the projects and ids. An id without a person has null. */
  personUuids(ids: readonly ProjectIds[]): Promise<readonly (string | null)[]>;
  /** Returns a text that changes with each commit and each replacement of the database. */
  version(): Promise<string>;
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
