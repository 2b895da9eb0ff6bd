// Types that the folders of the effects share. All timestamps are milliseconds since the epoch.

import type { Lane } from "../../platform/base/lane.ts";
import type { IncidentKind, TrailEntry } from "../stream/resume.ts";

/** The classes of usage, in the order in which `penstock usage` prints them. */
export const usageClasses = [
  "identified",
  "anonymous",
  "identify",
  "alias",
  "group_identify",
  "survey",
] as const;

/** The guide people-and-groups.md lists these outcomes too. */
export const linkOutcomes = [
  "merged",
  "already_one",
  "refused_illegal_id",
  "refused_self",
  "refused_both_known",
  "refused_cap",
] as const;

/** The guide people-and-groups.md lists these reasons too. */
export const rejectedReasons = [
  "not_json",
  "not_a_record",
  "wrong_project",
  "invalid_field",
  "too_deep",
  "number_out_of_range",
  "properties_too_large",
  "person_full",
  "group_full",
  "too_many_group_types",
  "name_too_long",
] as const;

export interface LinePlace {
  readonly lane: Lane;
  readonly partition: number;
  /** Number of the stream's incarnation, from 1. Incremented at each recreation. */
  readonly epoch: number;
  readonly sequence: number;
  readonly line: number;
}

export interface Stamp {
  readonly timeMs: number;
  /**
   * The position of the event's line, as text that sorts by lane, epoch, partition, sequence and
   * line. Orders stamps with equal times.
   */
  readonly rank: string;
}

export type UsageClass = (typeof usageClasses)[number];

/** A property. Its value is JSON text, so that numbers retain all digits. */
export type PropertyText = readonly [name: string, json: string];

/** The writes of an event, in the order in which they are applied. */
export interface PropertyWrites {
  readonly once: readonly PropertyText[];
  readonly set: readonly PropertyText[];
  readonly unset: readonly string[];
}

export type LinkKind = "identify" | "alias" | "merge";

export type LinkOutcome = (typeof linkOutcomes)[number];

export type RejectedReason = (typeof rejectedReasons)[number];

export interface Rejection {
  readonly reason: RejectedReason;
  /** A text for the operator, at most 200 characters. */
  readonly detail: string;
}

export interface EventEffect {
  readonly projectId: string;
  readonly stamp: Stamp;
  readonly place: LinePlace;
  readonly eventUuid: string;
  readonly receivedAtMs: number;
  /** The distinct id of the person; undefined if the event concerns no person. */
  readonly distinctId: string | undefined;
  /** The event's distinct id. Set even if the event concerns no person. */
  readonly eventDistinctId: string;
  readonly person: PropertyWrites | undefined;
  /** A request to merge the person of `from` into the person of `to`. `to` becomes the main id. */
  readonly link:
    | { readonly kind: LinkKind; readonly from: string; readonly to: string }
    | undefined;
  readonly group:
    | { readonly type: string; readonly key: string; readonly set: PropertyWrites }
    | undefined;
  /** The groups in `$groups`. The person is associated with them, but they are not created. */
  readonly memberOf: readonly { readonly type: string; readonly key: string }[];
  readonly rejections: readonly Rejection[];
}

/**
 * The last writes of a property: the newest `$set` (JSON text) or `$unset` (null), and the oldest
 * `$set_once`.
 *
 * The value of `once` is visible if there is no `write`, or if `write` is an older `$unset`.
 */
export interface PropertyState {
  readonly write: { readonly stamp: Stamp; readonly json: string | null } | undefined;
  readonly once: { readonly stamp: Stamp; readonly json: string } | undefined;
}

export type Properties = ReadonlyMap<string, PropertyState>;

export interface PropertyColumns {
  readonly json: string;
  readonly state: string;
}

/**
 * The row of a distinct id. It holds the person, or points to another id of the same person
 * (`mergedInto`).
 */
export interface MemberRow {
  readonly projectId: string;
  readonly distinctId: string;
  readonly uuid: string;
  readonly first: Stamp;
  readonly mergedInto: string | undefined;
  readonly person: PersonState | undefined;
}

export interface PersonState {
  /** The id with the oldest `first` stamp. Its uuid is reported as the uuid of the person. */
  readonly firstId: string;
  readonly firstStamp: Stamp;
  readonly firstUuid: string;
  /** The main id of the newest link, or `firstId` if there is no link. */
  readonly mainId: string;
  readonly mainStamp: Stamp | undefined;
  readonly known: boolean;
  readonly createdAtMs: number;
  /**
   * Time of the newest event, rounded down to the hour so that frequent events cause few writes.
   */
  readonly lastSeenAtMs: number;
  readonly idsTotal: number;
  readonly properties: PropertyColumns;
  /** Bytes of all stored names and values, plus 160 for each property. */
  readonly propertyBytes: number;
  /** Number of writes of the row. It depends on the batching. */
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
 * A distinct id that was seen with a group, which need not exist. The store retains the earliest
 * `firstSeenAtMs`.
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
  readonly distinctId: string | undefined;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /** The event's `received_at`, or the storage time of the frame if `received_at` is unreadable. */
  readonly atMs: number;
}

/** Counts to add to the stored counts. `day` is the day of `received_at`. */
export interface UsageDelta {
  readonly projectId: string;
  readonly day: string;
  readonly lane: Lane;
  readonly class: UsageClass;
  readonly events: number;
  readonly duplicates: number;
}

export interface ActiveIdsRow {
  readonly projectId: string;
  readonly day: string;
  readonly registers: Uint8Array;
  readonly estimate: number;
}

export interface SpikeRow {
  readonly projectId: string;
  /** The word `project` for a spike of the whole project, or a distinct id. */
  readonly subject: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly peakPerMinute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/**
 * Total size of the large properties of a project. Properties are large if a person or group has
 * over 64 KiB.
 */
export interface LargePropertiesRow {
  readonly projectId: string;
  readonly bytes: number;
}

export interface ActivityRow {
  readonly projectId: string;
  readonly state: string;
}

/** A message to publish after the commit. The message id deduplicates it. */
export interface OutboxRow {
  readonly messageId: string;
  readonly subject: string;
  readonly json: string;
}

export interface StoredOutboxRow extends OutboxRow {
  readonly id: number;
}

export interface IncidentRow {
  readonly stream: string;
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  /** Number of lost messages; 0 if unknown. */
  readonly messages: number;
  readonly detail: string;
}

export interface Position {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly created: string;
  readonly sequence: number;
  /** The latest applied frames, at most 1,000. The newest is last. */
  readonly trail: readonly TrailEntry[];
  /**
   * The first frame of each generation of duplicate detection. A restart reads the stream again
   * from the first of them.
   */
  readonly duplicatesFrom: readonly [previous: number, current: number];
  /** The newest `recordMs` of a line. It serves as the current time. */
  readonly watermarkMs: number;
}

/**
 * The content of a transaction. Rows replace stored rows with the same key unless stated otherwise.
 */
export interface Commit {
  /** Number of the previous commit. If the store has another number, it writes nothing. */
  readonly after: number;
  /** Number of this commit, random and positive. Erasures have negative numbers. */
  readonly number: number;
  /** More parts of this transaction follow. */
  readonly isPart?: boolean;
  readonly positions: readonly Position[];
  readonly frames: Readonly<Record<Lane, number>>;
  readonly members: readonly MemberRow[];
  /** Links to store, unless a stored link has the same ids, kind and outcome. */
  readonly links: readonly LinkRow[];
  readonly groups: readonly GroupRow[];
  readonly groupTypes: readonly { readonly projectId: string; readonly type: string }[];
  readonly groupMembers: readonly GroupMemberRow[];
  readonly largeProperties: readonly LargePropertiesRow[];
  /** Rejections to append. The store retains the newest 10,000 of each project and counts all. */
  readonly rejected: readonly RejectedRow[];
  readonly usage: readonly UsageDelta[];
  readonly activeIds: readonly ActiveIdsRow[];
  readonly spikes: readonly SpikeRow[];
  readonly activity: readonly ActivityRow[];
  readonly incidents: readonly IncidentRow[];
  readonly outbox: readonly OutboxRow[];
}
