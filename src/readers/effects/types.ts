// What the rooms of the effects hand to one another: the events as read, what they do, and the rows
// that come of it. Types alone. Times are milliseconds since the epoch, UTC.

import type { Lane } from "../../platform/base/lane.ts";
import type { IncidentKind } from "../stream/incidents.ts";
import type { TrailEntry } from "../stream/trail.ts";
import type { linkKinds, linkOutcomes, rejectedReasons, usageClasses } from "./closed-sets.ts";

/** Where a stored line stands. */
export interface LinePlace {
  readonly lane: Lane;
  readonly partition: number;
  /** Counts how often the stream was made anew; 1 at first. */
  readonly epoch: number;
  /** The number of its frame in the stream. */
  readonly sequence: number;
  /** Index of the line in its frame. */
  readonly line: number;
}

/**
 * When a value was written: the event's time, and among equal times the line's place as text that
 * sorts as `LinePlace` does (live after historical, then epoch, partition, sequence, line).
 * stamp.ts makes the text and compares stamps.
 */
export interface Stamp {
  /** The event's own time, but never later than `received_at`. */
  readonly timeMs: number;
  readonly rank: string;
}

export type UsageClass = (typeof usageClasses)[number];

/** A property's name, and its value as JSON text, digits and all. */
export type PropertyText = readonly [name: string, json: string];

/** What `$set_once`, `$set` and `$unset` of an event do, in this order. */
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

/** What an event does, apart from being counted. */
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
  /** The distinct id of the event, also where it concerns no person. */
  readonly eventDistinctId: string;
  readonly person: PropertyWrites | undefined;
  /** `from` joins the person of `to`; `to` is the main id from then on. */
  readonly link:
    | { readonly kind: LinkKind; readonly from: string; readonly to: string }
    | undefined;
  readonly group:
    | { readonly type: string; readonly key: string; readonly set: PropertyWrites }
    | undefined;
  /** The groups that the event's person belongs to (`$groups`): they are associated, not made. */
  readonly memberOf: readonly { readonly type: string; readonly key: string }[];
  readonly rejections: readonly Rejection[];
}

/**
 * The last writes of a property. `write` is the newest `$set` (its JSON text) or `$unset` (null),
 * `once` the oldest `$set_once`. The value is that of `write`; without one, or where `once` is
 * newer than an `$unset`, that of `once`. Both are joins, so the order in which writes come does
 * not matter.
 */
export interface PropertyState {
  readonly write: { readonly stamp: Stamp; readonly json: string | null } | undefined;
  readonly once: { readonly stamp: Stamp; readonly json: string } | undefined;
}

export type Properties = ReadonlyMap<string, PropertyState>;

/**
 * Properties as they lie in columns, in both stores: `toColumns` and `fromColumns` in people/. Both
 * texts come back character by character.
 */
export interface PropertyColumns {
  /** The values, for people and queries: `{"plan":"pro"}`. */
  readonly json: string;
  /** The stamps, and what no value shows: opaque; empty where there are no properties. */
  readonly state: string;
}

/**
 * A distinct id, and the person that it is, or was before it was merged into another's. There is
 * one row for each distinct id ever seen. Its `uuid` is uuidv5 of project and distinct id, so it
 * can be told without looking. The row without `mergedInto` is the person; the others point to it,
 * maybe over several rows.
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
  /** The newest event's time, to the hour: so that an event a second is not a write a second. */
  readonly lastSeenAtMs: number;
  readonly idsTotal: number;
  readonly properties: PropertyColumns;
  /** Bytes of all names and values that are remembered, and 160 for each property besides. */
  readonly propertyBytes: number;
  /** How often the person was written; depends on how writes fell together, so no dump has it. */
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
 * That a distinct id was seen with a group, whether or not there is such a group. Nobody reads the
 * row before it is written: the store keeps the lesser `firstSeenAtMs` of the old row and the new.
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
  /** The distinct id of the event; undefined where the line cannot be read. */
  readonly distinctId: string | undefined;
  readonly place: LinePlace;
  readonly eventUuid: string;
  /** The line's `received_at`, or when the frame was stored, where the line has none. */
  readonly atMs: number;
}

/** Events of a day in UTC (by `received_at`), to be added to what is there. */
export interface UsageDelta {
  readonly projectId: string;
  /** `2026-11-22`. */
  readonly day: string;
  readonly lane: Lane;
  readonly class: UsageClass;
  readonly events: number;
  readonly duplicates: number;
}

/** A HyperLogLog sketch of the distinct ids that were active on a day: replaces what is there. */
export interface ActiveIdsRow {
  readonly projectId: string;
  readonly day: string;
  readonly registers: Uint8Array;
  readonly estimate: number;
}

export interface SpikeRow {
  readonly projectId: string;
  /** `project`, or the distinct id that is hot. */
  readonly subject: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly peakPerMinute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/** How many bytes all large properties of a project's people and groups come to. */
export interface LargePropertiesRow {
  readonly projectId: string;
  readonly bytes: number;
}

/** What spike detection remembers of a project: opaque JSON text, replaces what is there. */
export interface ActivityRow {
  readonly projectId: string;
  readonly state: string;
}

/** Something to be published once the transaction is there. The id makes it once. */
export interface OutboxRow {
  readonly messageId: string;
  readonly subject: string;
  readonly json: string;
}

/** As it lies in the store; later rows have greater ids. */
export interface StoredOutboxRow extends OutboxRow {
  readonly id: number;
}

export interface IncidentRow {
  readonly stream: string;
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  /** How many messages it concerns, where that is known. */
  readonly messages: number;
  readonly detail: string;
}

/** How far a stream is applied. */
export interface Position {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  /** When the stream was made, as the server says it. */
  readonly created: string;
  /** The last frame that is applied; 0: none. */
  readonly sequence: number;
  /** The latest frames, newest last, at most 1,000. */
  readonly trail: readonly TrailEntry[];
  /**
   * The first frame of each of the two generations of the memory of duplicates. A restart reads the
   * frames from there on again, to fill it.
   */
  readonly duplicatesFrom: readonly [previous: number, current: number];
  /** The newest `recordMs` of a line that was read: what time it is, for whatever goes by time. */
  readonly watermarkMs: number;
}

/** All that a transaction writes. Rows replace those of the same key unless said otherwise. */
export interface Commit {
  /**
   * The number of the commit that this one follows. Another one in the store means that there is a
   * second writer: then nothing is written.
   */
  readonly after: number;
  /**
   * The number of this one, by which the next is told to follow it: drawn at random, so that a
   * database restored from a copy and written by another writer since is never taken for the one
   * that was left. Always positive: that of an erasure, which no writer makes, is negative.
   */
  readonly number: number;
  /**
   * Rows that go before the others of the commit of this number, in its transaction: there may be
   * more of them than should be in memory at once.
   */
  readonly isPart?: boolean;
  readonly positions: readonly Position[];
  /** How many frames were applied, for metrics; no store writes it. */
  readonly frames: Readonly<Record<Lane, number>>;
  readonly members: readonly MemberRow[];
  /** One that has been there with the same ids, kind and outcome is left out. */
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
