// The types that the folders of the effects share: events as read, the effects of these events, and
// the resulting rows. All times are milliseconds since the epoch, UTC.

import type { Lane } from "../../platform/base/lane.ts";
import type { IncidentKind, TrailEntry } from "../stream/resume.ts";
import type { linkKinds, linkOutcomes, rejectedReasons, usageClasses } from "./closed-sets.ts";

/** The position of a stored line in the streams. */
export interface LinePlace {
  readonly lane: Lane;
  readonly partition: number;
  /** Epoch of the stream: 1 at first, incremented whenever the stream is recreated. */
  readonly epoch: number;
  /** Sequence number of the line's frame in the stream. */
  readonly sequence: number;
  /** Index of the line in the frame, from 0. */
  readonly line: number;
}

/**
 * The time at which a value was written. Equal times are ordered by rank: the position of the line
 * as text that sorts by lane (live after historical), epoch, partition, sequence and line. stamp.ts
 * creates ranks and compares stamps.
 */
export interface Stamp {
  /** The event's own time, limited to the `received_at` of the event. */
  readonly timeMs: number;
  readonly rank: string;
}

export type UsageClass = (typeof usageClasses)[number];

/** The name of a property, and the value as JSON text with all digits. */
export type PropertyText = readonly [name: string, json: string];

/** The property writes of an event: `$set_once`, `$set` and `$unset`, applied in this order. */
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
  /** Description of the rejected part of the event, for the operator; at most 200 characters. */
  readonly detail: string;
}

/** The effect of an event, except its usage count. */
export interface EventEffect {
  readonly projectId: string;
  readonly stamp: Stamp;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /** Time at which the gateway received the event: the `received_at` of the line. */
  readonly receivedAtMs: number;
  /**
   * The distinct id of the person that the event creates or updates. Undefined if the event
   * concerns no person (no person profile, `$posthog_cookieless`, a group identify).
   */
  readonly distinctId: string | undefined;
  /** The distinct id of the event, also if the event concerns no person. */
  readonly eventDistinctId: string;
  readonly person: PropertyWrites | undefined;
  /** A request to merge the person of `from` into the person of `to`. `to` becomes the main id. */
  readonly link:
    | { readonly kind: LinkKind; readonly from: string; readonly to: string }
    | undefined;
  readonly group:
    | { readonly type: string; readonly key: string; readonly set: PropertyWrites }
    | undefined;
  /**
   * The groups of the event's person (`$groups`). They are associated with the person, not created.
   */
  readonly memberOf: readonly { readonly type: string; readonly key: string }[];
  readonly rejections: readonly Rejection[];
}

/**
 * The last writes of a property. `write` is the newest `$set` (its JSON text) or `$unset` (null).
 * `once` is the oldest `$set_once`.
 *
 * If `write` is a `$set`, the property has the value of `write`. If `write` is undefined, or is an
 * `$unset` older than `once`, the property has the value of `once`. Merging two states is a join,
 * so the order in which writes arrive does not matter.
 */
export interface PropertyState {
  readonly write: { readonly stamp: Stamp; readonly json: string | null } | undefined;
  readonly once: { readonly stamp: Stamp; readonly json: string } | undefined;
}

export type Properties = ReadonlyMap<string, PropertyState>;

/**
 * The two text columns in which both stores hold properties. `toColumns` and `fromColumns` in
 * people/ convert them. The stores return both texts unchanged.
 */
export interface PropertyColumns {
  /** The values as a JSON object for queries: `{"plan":"pro"}`. */
  readonly json: string;
  /** The stamps and the hidden values, as opaque text. Empty if there are no properties. */
  readonly state: string;
}

/**
 * A distinct id with its person, or with the id into which its person was merged. Every distinct id
 * that was ever seen has one row.
 *
 * The row without `mergedInto` is the person. The other rows point to the person's row, directly or
 * over several rows.
 */
export interface MemberRow {
  readonly projectId: string;
  readonly distinctId: string;
  /** Uuidv5 of the project and the distinct id, so no look-up is needed. */
  readonly uuid: string;
  /** The least stamp of all events with the distinct id. */
  readonly first: Stamp;
  readonly mergedInto: string | undefined;
  /** The state of the person. Undefined if the row is merged into another row. */
  readonly person: PersonState | undefined;
}

export interface PersonState {
  /**
   * The member id with the least `first` stamp. The uuid of this id is reported as the person's
   * uuid.
   */
  readonly firstId: string;
  readonly firstStamp: Stamp;
  readonly firstUuid: string;
  /** The main id of the newest link. Without a link, the same as `firstId`. */
  readonly mainId: string;
  readonly mainStamp: Stamp | undefined;
  readonly known: boolean;
  /** Time of the person's oldest event. */
  readonly createdAtMs: number;
  /**
   * Time of the person's newest event, rounded down to the hour so that frequent events do not each
   * cause a write.
   */
  readonly lastSeenAtMs: number;
  readonly idsTotal: number;
  readonly properties: PropertyColumns;
  /** Size of all stored property names and values in bytes, plus 160 for each property. */
  readonly propertyBytes: number;
  /** Number of writes of the person. Depends on the batching, so dumps exclude it. */
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
 * A record that a distinct id was seen with a group, whether or not the group exists. The writer
 * does not read the old row first: the store retains the lesser `firstSeenAtMs` of the old and the
 * new row.
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
  /** The distinct id of the event. Undefined if the line cannot be read. */
  readonly distinctId: string | undefined;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /**
   * Time at which the gateway received the event. If the line has no `received_at`, the time at
   * which the frame was stored.
   */
  readonly atMs: number;
}

/** Number of events of a UTC day (by `received_at`). The store adds it to the stored counts. */
export interface UsageDelta {
  readonly projectId: string;
  /** A UTC day such as `2026-11-22`. */
  readonly day: string;
  readonly lane: Lane;
  readonly class: UsageClass;
  readonly events: number;
  readonly duplicates: number;
}

/**
 * A HyperLogLog sketch of the distinct ids that were active on a day. Replaces the stored sketch.
 */
export interface ActiveIdsRow {
  readonly projectId: string;
  readonly day: string;
  readonly registers: Uint8Array;
  readonly estimate: number;
}

export interface SpikeRow {
  readonly projectId: string;
  /** The word `project`, or the distinct id that has the spike. */
  readonly subject: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly peakPerMinute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/** Total size of all large properties of a project's people and groups. */
export interface LargePropertiesRow {
  readonly projectId: string;
  readonly bytes: number;
}

/** The state of spike detection for a project, as opaque JSON text. Replaces the stored state. */
export interface ActivityRow {
  readonly projectId: string;
  readonly state: string;
}

/** A message to publish after the transaction is committed. The message id deduplicates it. */
export interface OutboxRow {
  readonly messageId: string;
  readonly subject: string;
  readonly json: string;
}

/** A stored outbox row. Later rows have greater ids. */
export interface StoredOutboxRow extends OutboxRow {
  readonly id: number;
}

export interface IncidentRow {
  readonly stream: string;
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  /** Number of affected messages; 0 if unknown. */
  readonly messages: number;
  readonly detail: string;
}

/** The position of the effects in a stream. */
export interface Position {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  /** Creation time of the stream, as the NATS server reports it. */
  readonly created: string;
  /** Sequence number of the last applied frame; 0 if no frame was applied. */
  readonly sequence: number;
  /** The latest applied frames, at most 1,000, newest last. */
  readonly trail: readonly TrailEntry[];
  /**
   * The first frame of each of the two generations of duplicate detection. After a restart, the
   * reader reads the frames from there again to restore duplicate detection.
   */
  readonly duplicatesFrom: readonly [previous: number, current: number];
  /**
   * The newest `recordMs` of a line that was read. Serves as the current time for everything that
   * depends on time.
   */
  readonly watermarkMs: number;
}

/**
 * The data that a transaction writes. A row replaces the stored row with the same key unless its
 * comment states otherwise.
 */
export interface Commit {
  /**
   * The number of the previous commit. If the store's last commit has a different number, another
   * writer exists, and the store writes nothing.
   */
  readonly after: number;
  /**
   * The number of this commit; the next commit refers to it in `after`. Random, so that a restored
   * database that another writer has continued never matches. Always positive: only erasures have
   * negative numbers.
   */
  readonly number: number;
  /**
   * Whether other parts of the same commit follow. The store writes the rows of all parts in one
   * transaction, so a commit may have more rows than fit in memory.
   */
  readonly isPart?: boolean;
  readonly positions: readonly Position[];
  /** Number of applied frames per lane, for metrics. Not stored. */
  readonly frames: Readonly<Record<Lane, number>>;
  readonly members: readonly MemberRow[];
  /**
   * The links to add. The store skips a link whose ids, kind and outcome equal those of a stored
   * link.
   */
  readonly links: readonly LinkRow[];
  readonly groups: readonly GroupRow[];
  readonly groupTypes: readonly { readonly projectId: string; readonly type: string }[];
  readonly groupMembers: readonly GroupMemberRow[];
  readonly largeProperties: readonly LargePropertiesRow[];
  /**
   * The rejections to append. The store retains the newest 10,000 of each project and counts all.
   */
  readonly rejected: readonly RejectedRow[];
  readonly usage: readonly UsageDelta[];
  readonly activeIds: readonly ActiveIdsRow[];
  readonly spikes: readonly SpikeRow[];
  readonly activity: readonly ActivityRow[];
  readonly incidents: readonly IncidentRow[];
  readonly outbox: readonly OutboxRow[];
}
