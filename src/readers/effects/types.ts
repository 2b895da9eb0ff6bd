// The types that the folders of the effects share: events as read, their effects, and the resulting
// rows. Times are milliseconds since the epoch, UTC.

import type { Lane } from "../../platform/base/lane.ts";
import type { IncidentKind } from "../stream/incidents.ts";
import type { TrailEntry } from "../stream/trail.ts";
import type { linkKinds, linkOutcomes, rejectedReasons, usageClasses } from "./closed-sets.ts";

/** The place of a stored line. */
export interface LinePlace {
  readonly lane: Lane;
  readonly partition: number;
  /** Incremented whenever the stream was recreated; 1 at first. */
  readonly epoch: number;
  /** The number of its frame in the stream. */
  readonly sequence: number;
  /** Index of the line in its frame. */
  readonly line: number;
}

/**
 * When a value was written: the event's time, and among equal times the line's place as text that
 * sorts as `LinePlace` does (live after historical, then epoch, partition, sequence, line).
 * stamp.ts creates the text and compares stamps.
 */
export interface Stamp {
  /** The event's own time, but never later than `received_at`. */
  readonly timeMs: number;
  readonly rank: string;
}

export type UsageClass = (typeof usageClasses)[number];

/** A property's name, and its value as JSON text, with all digits. */
export type PropertyText = readonly [name: string, json: string];

/** The writes of an event's `$set_once`, `$set` and `$unset`, in this order. */
export interface PropertyWrites {
  readonly once: readonly PropertyText[];
  readonly set: readonly PropertyText[];
  readonly unset: readonly string[];
}

export type LinkKind = (typeof linkKinds)[number];

export type LinkOutcome = (typeof linkOutcomes)[number];

export type RejectedReason = (typeof rejectedReasons)[number];

export interface Rejection {
  readonly reason: RejectedReason;
  /** What and where, for people; at most 200 characters. */
  readonly detail: string;
}

/** The effect of an event, apart from being counted. */
export interface EventEffect {
  readonly projectId: string;
  readonly stamp: Stamp;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /** The line's `received_at`. */
  readonly receivedAtMs: number;
  /**
   * The distinct id whose person it makes or updates. Undefined: it concerns no person (no person
   * profile, `$posthog_cookieless`, a group identify).
   */
  readonly distinctId: string | undefined;
  /** The distinct id of the event, even if it concerns no person. */
  readonly eventDistinctId: string;
  readonly person: PropertyWrites | undefined;
  /** `from` joins the person of `to`; `to` is the main id from then on. */
  readonly link:
    | { readonly kind: LinkKind; readonly from: string; readonly to: string }
    | undefined;
  readonly group:
    | { readonly type: string; readonly key: string; readonly set: PropertyWrites }
    | undefined;
  /**
   * The groups that the event's person belongs to (`$groups`): they are associated, not created.
   */
  readonly memberOf: readonly { readonly type: string; readonly key: string }[];
  readonly rejections: readonly Rejection[];
}

/**
 * The last writes of a property. `write` is the newest `$set` (its JSON text) or `$unset` (null),
 * `once` the oldest `$set_once`. The value is that of `write`; without one, or if `once` is newer
 * than an `$unset`, that of `once`. Both are joins, so the order in which writes arrive does not
 * matter.
 */
export interface PropertyState {
  readonly write: { readonly stamp: Stamp; readonly json: string | null } | undefined;
  readonly once: { readonly stamp: Stamp; readonly json: string } | undefined;
}

export type Properties = ReadonlyMap<string, PropertyState>;

/**
 * Properties as columns, in both stores: `toColumns` and `fromColumns` in people/. Both texts are
 * returned unchanged.
 */
export interface PropertyColumns {
  /** The values, for people and queries: `{"plan":"pro"}`. */
  readonly json: string;
  /** The stamps, and hidden values: opaque; empty if there are no properties. */
  readonly state: string;
}

/**
 * A distinct id, and its person, or the person that it was before it was merged into another's.
 * There is one row for each distinct id ever seen. Its `uuid` is uuidv5 of project and distinct id,
 * so it is computed without a look-up. The row without `mergedInto` is the person; the others point
 * to it, perhaps over several rows.
 */
export interface MemberRow {
  readonly projectId: string;
  readonly distinctId: string;
  /** The uuid of this id's own row. */
  readonly uuid: string;
  /** When the id was first seen: the least stamp. */
  readonly first: Stamp;
  readonly mergedInto: string | undefined;
  /** Undefined in a row that is merged into another. */
  readonly person: PersonState | undefined;
}

export interface PersonState {
  /** The member id with the least `first` stamp: its uuid is shown as the person's. */
  readonly firstId: string;
  readonly firstStamp: Stamp;
  readonly firstUuid: string;
  /** The id of the newest link that named a main one; without a link `firstId`. */
  readonly mainId: string;
  readonly mainStamp: Stamp | undefined;
  readonly known: boolean;
  /** The oldest event's time. */
  readonly createdAtMs: number;
  /**
   * The newest event's time, to the hour, so that an event per second is not a write per second.
   */
  readonly lastSeenAtMs: number;
  readonly idsTotal: number;
  readonly properties: PropertyColumns;
  /** Size of all stored names and values, plus 160 for each property. */
  readonly propertyBytes: number;
  /** Number of writes of the person; depends on the batching, so it is not in a dump. */
  readonly version: number;
}

export interface LinkRow {
  readonly projectId: string;
  readonly place: LinePlace;
  readonly a: string;
  readonly b: string;
  readonly kind: LinkKind;
  readonly atMs: number;
  readonly eventUuid: string;
  readonly outcome: LinkOutcome;
}

export interface GroupRow {
  readonly projectId: string;
  readonly type: string;
  readonly key: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly properties: PropertyColumns;
  readonly propertyBytes: number;
  readonly version: number;
}

/**
 * Records that a distinct id was seen with a group, whether or not the group exists. The row is
 * written without reading it first: the store keeps the lesser `firstSeenAtMs` of the old row and
 * the new.
 */
export interface GroupMemberRow {
  readonly projectId: string;
  readonly type: string;
  readonly key: string;
  readonly distinctId: string;
  readonly firstSeenAtMs: number;
}

export interface RejectedRow extends Rejection {
  readonly projectId: string;
  /** The distinct id of the event; undefined if the line cannot be read. */
  readonly distinctId: string | undefined;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /** The line's `received_at`, or the storage time of the frame if the line has none. */
  readonly atMs: number;
}

/** Events of a UTC day (by `received_at`), to add to the stored counts. */
export interface UsageDelta {
  readonly projectId: string;
  /** A day such as `2026-11-22`. */
  readonly day: string;
  readonly lane: Lane;
  readonly class: UsageClass;
  readonly events: number;
  readonly duplicates: number;
}

/** A HyperLogLog sketch of the distinct ids that were active on a day: replaces the stored one. */
export interface ActiveIdsRow {
  readonly projectId: string;
  readonly day: string;
  readonly registers: Uint8Array;
  readonly estimate: number;
}

export interface SpikeRow {
  readonly projectId: string;
  /** `project`, or the hot distinct id. */
  readonly subject: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly peakPerMinute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/** The total size of all large properties of a project's people and groups. */
export interface LargePropertiesRow {
  readonly projectId: string;
  readonly bytes: number;
}

/** The state of spike detection for a project: opaque JSON text, replaces the stored one. */
export interface ActivityRow {
  readonly projectId: string;
  readonly state: string;
}

/** A message to publish once the transaction is committed. The id deduplicates it. */
export interface OutboxRow {
  readonly messageId: string;
  readonly subject: string;
  readonly json: string;
}

/** A stored row; later rows have greater ids. */
export interface StoredOutboxRow extends OutboxRow {
  readonly id: number;
}

export interface IncidentRow {
  readonly stream: string;
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  /** Number of affected messages, if known. */
  readonly messages: number;
  readonly detail: string;
}

/** The position of a stream. */
export interface Position {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  /** When the stream was created, as the server reports it. */
  readonly created: string;
  /** The last applied frame; 0: none. */
  readonly sequence: number;
  /** The latest frames, newest last, at most 1,000. */
  readonly trail: readonly TrailEntry[];
  /**
   * The first frame of each of the two generations of duplicate detection. A restart reads the
   * frames from there again, to restore it.
   */
  readonly duplicatesFrom: readonly [previous: number, current: number];
  /**
   * The newest `recordMs` of a line that was read: the current time for everything that depends on
   * time.
   */
  readonly watermarkMs: number;
}

/**
 * Everything that a transaction writes. Rows replace those of the same key unless stated otherwise.
 */
export interface Commit {
  /**
   * The number of the commit before this one. If the store has another number, there is a second
   * writer, and nothing is written.
   */
  readonly after: number;
  /**
   * The number of this commit, which the next one names as its predecessor. It is random, so that a
   * restored database that another writer has continued is never taken for the previous one. Always
   * positive: the number of an erasure, which no writer creates, is negative.
   */
  readonly number: number;
  /**
   * The rows are written before the others of the commit with this number, in its transaction: a
   * commit may have more rows than should be in memory at once.
   */
  readonly isPart?: boolean;
  readonly positions: readonly Position[];
  /** Number of applied frames, for metrics; not stored. */
  readonly frames: Readonly<Record<Lane, number>>;
  readonly members: readonly MemberRow[];
  /** A link with the same ids, kind and outcome as a stored one is skipped. */
  readonly links: readonly LinkRow[];
  readonly groups: readonly GroupRow[];
  readonly groupTypes: readonly { readonly projectId: string; readonly type: string }[];
  readonly groupMembers: readonly GroupMemberRow[];
  readonly largeProperties: readonly LargePropertiesRow[];
  /** Appended; the newest 10,000 of each project are kept, and all are counted. */
  readonly rejected: readonly RejectedRow[];
  readonly usage: readonly UsageDelta[];
  readonly activeIds: readonly ActiveIdsRow[];
  readonly spikes: readonly SpikeRow[];
  readonly activity: readonly ActivityRow[];
  readonly incidents: readonly IncidentRow[];
  readonly outbox: readonly OutboxRow[];
}
