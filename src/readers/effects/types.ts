// Types that several folders of the effects use. All timestamps are milliseconds since 1970.

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

/** The guide people-and-groups.md also lists these outcomes. */
export const linkOutcomes = [
  "merged",
  "already_one",
  "refused_illegal_id",
  "refused_self",
  "refused_both_known",
  "refused_cap",
] as const;

/** The guide people-and-groups.md also lists these reasons. */
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
  /** Incremented when the stream is recreated. The first epoch is 1. */
  readonly epoch: number;
  readonly sequence: number;
  readonly line: number;
}

export interface Stamp {
  readonly timeMs: number;
  /**
   * The position of the event's line as text. It decides between stamps with equal times. The texts
   * sort by lane, epoch, partition, sequence and line.
   */
  readonly rank: string;
}

export type UsageClass = (typeof usageClasses)[number];

/** A property. The value is JSON text, so that numbers keep all digits. */
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
  /** A text for the operator with at most 200 characters. */
  readonly detail: string;
}

export interface EventEffect {
  readonly projectId: string;
  readonly stamp: Stamp;
  readonly place: LinePlace;
  readonly eventUuid: string;
  readonly receivedAtMs: number;
  /** The distinct id of the person. It is undefined if the event does not change a person. */
  readonly distinctId: string | undefined;
  /** The distinct id of the event. It is set even if the event does not change a person. */
  readonly eventDistinctId: string;
  readonly person: PropertyWrites | undefined;
  /** A request to merge the person of `from` into the person of `to`, which becomes the main id. */
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
 * The value of `once` is used if there is no `write`, or if `write` is an `$unset` that is older
 * than `once`.
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
 * The row of a distinct id. It contains the person, or it points to another id of the same person
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
  /** The id with the oldest `first` stamp. The uuid of this id is the uuid of the person. */
  readonly firstId: string;
  readonly firstStamp: Stamp;
  readonly firstUuid: string;
  /** The main id of the newest link. If there is no link, it is `firstId`. */
  readonly mainId: string;
  readonly mainStamp: Stamp | undefined;
  readonly known: boolean;
  readonly createdAtMs: number;
  /**
   * Time of the newest event, rounded down to the hour. It is rounded so that a person with
   * frequent events needs few writes.
   */
  readonly lastSeenAtMs: number;
  readonly idsTotal: number;
  readonly properties: PropertyColumns;
  /** The bytes of all stored names and values, plus 160 for each property. */
  readonly propertyBytes: number;
  /** Number of times that the row was written. It depends on the batching. */
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
 * A distinct id that was seen with a group. The group does not have to exist. The store keeps the
 * earliest `firstSeenAtMs`.
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
  /** The `received_at` of the event, or the storage time of the frame if it cannot be read. */
  readonly atMs: number;
}

/** Counts that are added to the stored counts. `day` is the UTC day of `received_at`. */
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
  /** A distinct id, or the word `project` if the spike is of the whole project. */
  readonly subject: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly peakPerMinute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/**
 * Total size of the large properties of a project. The properties of a person or group are large if
 * they have more than 64 KiB.
 */
export interface LargePropertiesRow {
  readonly projectId: string;
  readonly bytes: number;
}

export interface ActivityRow {
  readonly projectId: string;
  readonly state: string;
}

/** A message that is published after the commit. Its id is used for deduplication. */
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
  /** Number of lost messages. It is 0 if the number is unknown. */
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
  /** The latest applied frames, at most 1,000. The newest frame is last. */
  readonly trail: readonly TrailEntry[];
  /**
   * The first frame of each generation of duplicate detection. After a restart, the stream is read
   * again from the first frame of the previous generation.
   */
  readonly duplicatesFrom: readonly [previous: number, current: number];
  /** The newest `recordMs` of all lines. It is used as the current time. */
  readonly watermarkMs: number;
}

/**
 * The content of a transaction. Unless stated otherwise, a row replaces the stored row with the
 * same key.
 */
export interface Commit {
  /** Number of the previous commit. If the store has a different number, it rejects the commit. */
  readonly after: number;
  /** Random positive number of this commit. Only erasures have negative numbers. */
  readonly number: number;
  readonly isPart?: boolean;
  readonly positions: readonly Position[];
  readonly frames: Readonly<Record<Lane, number>>;
  readonly members: readonly MemberRow[];
  /** Links to store. If the store has an equal link with the same outcome, the link is skipped. */
  readonly links: readonly LinkRow[];
  readonly groups: readonly GroupRow[];
  readonly groupTypes: readonly { readonly projectId: string; readonly type: string }[];
  readonly groupMembers: readonly GroupMemberRow[];
  readonly largeProperties: readonly LargePropertiesRow[];
  /** Rejections to add. The store counts all, and retains the newest 10,000 of each project. */
  readonly rejected: readonly RejectedRow[];
  readonly usage: readonly UsageDelta[];
  readonly activeIds: readonly ActiveIdsRow[];
  readonly spikes: readonly SpikeRow[];
  readonly activity: readonly ActivityRow[];
  readonly incidents: readonly IncidentRow[];
  readonly outbox: readonly OutboxRow[];
}
