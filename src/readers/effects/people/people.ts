// Applies batches of events to persons and groups in memory. The rows of a running commit stay in
// memory, so that the next batch can be applied before the commit ends. The result does not depend
// on the clock.

import type { Log } from "../../../platform/base/log.ts";
import { SparseWarning } from "../../../platform/base/retry.ts";
import type { StoredLine } from "../lines/line.ts";
import { compareStamps, frameRank, lineRank } from "../stamp.ts";
import type {
  Commit,
  EventEffect,
  GroupRow,
  LargePropertiesRow,
  LinkRow,
  MemberRow,
  RejectedReason,
  RejectedRow,
  Stamp,
} from "../types.ts";
import { Groups } from "./groups.ts";
import { type Member, Members, type SeenLine } from "./members.ts";
import {
  type BagName,
  LargeProperties,
  noRoom,
  type PropertiesDropped,
  Refused,
} from "./property-bag.ts";
import { type Missing, PlainIds, partsOf, type Seen, Wanted } from "./wanted.ts";

export interface PeopleOptions {
  /** Approximate maximum bytes of cached rows. Rows of the current batches do not count. */
  readonly cacheBytesMax?: number;
  readonly idsMax?: number;
  readonly propertyBytesMax?: number;
  readonly propertiesMax?: number;
  /**
   * Maximum bytes of large properties per project. The properties of a person or group are large if
   * they have more than 64 KiB.
   */
  readonly largeBytesMax?: number;
  readonly groupTypesMax?: number;
  readonly depthMax?: number;
}

const mebibyte = 1_048_576;

const defaults: Required<PeopleOptions> = {
  cacheBytesMax: 256 * mebibyte,
  idsMax: 10_000,
  propertyBytesMax: mebibyte / 2,
  propertiesMax: 1_000,
  largeBytesMax: 64 * mebibyte,
  groupTypesMax: 100,
  depthMax: 64,
};

type PlainLine = Pick<StoredLine, "frame" | "line" | "projectId" | "distinctId" | "timeMs">;

export interface Loaded {
  readonly members: readonly MemberRow[];
  readonly groups: readonly GroupRow[];
  readonly groupTypes: Commit["groupTypes"];
}

export type PeopleChanges = Pick<
  Commit,
  "members" | "links" | "groups" | "groupTypes" | "groupMembers" | "largeProperties" | "rejected"
>;

const detailLengthMax = 200;
const droppedEveryMs = 1_000;
const droppedWords =
  "effects dropped the properties of a row: they do not match its property_state, because the row was changed by hand. Restore the row from a backup, or run `penstock effects rebuild`";
const linkBytes = 1_000;
const rejectedBytes = 1_000;

export class People {
  readonly #members: Members;
  readonly #groups: Groups;
  readonly #large: LargeProperties;
  readonly #groupTypesMax: number;
  readonly #wanted = new Wanted();
  readonly #plainIds = new PlainIds();
  #queue: (EventEffect | RejectedRow)[] = [];
  #applied = 0;
  #links: LinkRow[] = [];
  #rejected: RejectedRow[] = [];
  #frame: StoredLine["frame"] | undefined = undefined;
  #frameRank = "";

  constructor(options: PeopleOptions = {}, log?: Pick<Log, "warn">) {
    const { cacheBytesMax, groupTypesMax, largeBytesMax, ...limits } = { ...defaults, ...options };
    this.#groupTypesMax = groupTypesMax;
    this.#large = new LargeProperties(largeBytesMax);
    const warnings = log && {
      members: new SparseWarning(log, droppedEveryMs),
      groups: new SparseWarning(log, droppedEveryMs),
    };
    const dropped: PropertiesDropped = (table, row) =>
      warnings?.[table].warn({ table, row }, droppedWords);
    const rest = { ...limits, large: this.#large, dropped };
    this.#members = new Members({ cacheBytesMax: (cacheBytesMax * 3) / 4, ...rest });
    const typesMax = groupTypesMax;
    this.#groups = new Groups({ cacheBytesMax: cacheBytesMax / 4, typesMax, ...rest });
  }

  get cacheBytes(): number {
    const { groups, types, associations } = this.#groups;
    return this.#members.rows.bytes + groups.bytes + types.bytes + associations.bytes;
  }

  get changedRows(): number {
    const { groups, associations } = this.#groups;
    const rows = [this.#members.rows, groups, associations];
    const changed = rows.reduce((sum, { changedRows }) => sum + changedRows, 0);
    return changed + this.#links.length + this.#rejected.length;
  }

  get changedBytes(): number {
    const { groups, associations } = this.#groups;
    const rows = [this.#members.rows, groups, associations];
    const changed = rows.reduce((sum, { changedBytes }) => sum + changedBytes, 0);
    return changed + linkBytes * this.#links.length + rejectedBytes * this.#rejected.length;
  }

  seen(line: SeenLine): boolean {
    return this.#members.seen(line);
  }

  /**
   * Applies a plain line. It may be applied before effects that were queued earlier, because the
   * order of plain lines does not matter.
   */
  touch(line: PlainLine): void {
    const { projectId, distinctId, timeMs } = line;
    const row = this.#members.missing(projectId, distinctId);
    if (row === undefined) {
      const seen = { stamp: this.#stampOf(line), lastMs: timeMs };
      this.#members.touch(projectId, distinctId, seen);
      return;
    }
    const seen = this.#plainIds.get(projectId, distinctId);
    if (seen === undefined) {
      this.#wanted.member(projectId, row);
      this.#plainIds.add(projectId, distinctId, { stamp: this.#stampOf(line), lastMs: timeMs });
      return;
    }
    if (timeMs > seen.lastMs) seen.lastMs = timeMs;
    if (seen.stamp.timeMs < timeMs) return;
    const stamp = this.#stampOf(line);
    if (compareStamps(stamp, seen.stamp) < 0) seen.stamp = stamp;
  }

  add(effect: EventEffect): void {
    this.#queue.push(effect);
    const { projectId, distinctId, link, group } = effect;
    if (distinctId !== undefined) this.#want(projectId, distinctId);
    if (link !== undefined) {
      this.#want(projectId, link.from);
      this.#want(projectId, link.to);
    }
    if (group === undefined) return;
    const { type, key } = group;
    if (!this.#groups.isHere(projectId, group)) this.#wanted.group({ projectId, type, key });
    if (!this.#groups.areTypesHere(projectId)) this.#wanted.typesOf.add(projectId);
  }

  reject(row: RejectedRow): void {
    this.#queue.push(row);
  }

  get queued(): number {
    return this.#queue.length + Math.max(this.#wanted.memberRows, this.#plainIds.size);
  }

  /**
   * Empties the queue. Returns its entries as a list of functions. Each function puts some of the
   * entries back into the queue, so that few rows are loaded at a time.
   */
  takeParts(): (() => void)[] {
    const parts: (() => void)[] = [];
    for (const [projectId, ids] of this.#plainIds.all()) {
      for (const some of partsOf([...ids]))
        parts.push(() => {
          for (const [id, seen] of some) this.#touchAgain(projectId, id, seen);
        });
    }
    for (const some of partsOf(this.#queue))
      parts.push(() => {
        for (const one of some) {
          if (isRejected(one)) this.reject(one);
          else this.add(one);
        }
      });
    this.#wanted.clear();
    this.#plainIds.clear();
    this.#queue = [];
    return parts;
  }

  missing(): Missing | undefined {
    return this.#wanted.missing();
  }

  adopt(loaded: Loaded): void {
    for (const row of loaded.members) this.#members.adopt(row);
    for (const row of loaded.groups) this.#groups.adopt(row);
    const types = Map.groupBy(loaded.groupTypes, ({ projectId }) => projectId);
    for (const projectId of this.#wanted.typesOf) {
      const rows = (types.get(projectId) ?? []).map(({ type }) => type);
      this.#groups.adoptTypes(projectId, rows);
    }
  }

  /**
   * Applies the next `effectsMax` entries of the queue. Returns true if all entries are applied.
   * Until then, the caller must not add entries. After an error, the caller must call `begin`.
   */
  apply(effectsMax = Number.POSITIVE_INFINITY): boolean {
    for (const [projectId, ids] of this.#plainIds.all())
      for (const [id, seen] of ids) this.#members.touch(projectId, id, seen);
    this.#plainIds.clear();
    this.#wanted.clear();
    const end = Math.min(this.#queue.length, this.#applied + effectsMax);
    while (this.#applied < end) {
      const one = this.#queue[this.#applied++]!;
      if (isRejected(one)) this.#rejected.push(one);
      else this.#apply(one);
    }
    if (end < this.#queue.length) return false;
    this.#applied = 0;
    this.#queue = [];
    this.#frame = undefined;
    this.#members.rows.trim();
    this.#groups.trim();
    return true;
  }

  /**
   * Returns copies of the rows that changed since the last call. The caller must not apply anything
   * until the promise is fulfilled. The rows stay in memory until the caller calls `committed`.
   */
  *changes(): Generator<void, PeopleChanges> {
    const { groups, types, associations } = this.#groups;
    const groupTypes = yield* types.writeChanged((row) => row.takeAdded());
    const changes = {
      members: yield* this.#members.rows.writeChanged((member) => member.row()),
      links: this.#links,
      groups: yield* groups.writeChanged((group) => group.row()),
      groupTypes: groupTypes.flat(),
      groupMembers: yield* associations.writeChanged((row) => row.row()),
      largeProperties: this.#large.takeChanged(),
      rejected: this.#rejected,
    };
    this.#links = [];
    this.#rejected = [];
    return changes;
  }

  committed(): void {
    this.#members.rows.committed();
    this.#groups.committed();
  }

  begin(largeProperties: readonly LargePropertiesRow[]): void {
    this.#large.begin(largeProperties);
    this.#members.rows.clear();
    this.#groups.clear();
    this.#wanted.clear();
    this.#plainIds.clear();
    this.#queue = [];
    this.#applied = 0;
    this.#links = [];
    this.#rejected = [];
    this.#frame = undefined;
  }

  #apply(effect: EventEffect): void {
    const { projectId, distinctId, stamp } = effect;
    for (const { reason, detail } of effect.rejections) this.#reject(effect, reason, detail);
    if (distinctId !== undefined) {
      const seen = { stamp, lastMs: stamp.timeMs };
      const member = this.#members.touch(projectId, distinctId, seen);
      this.#link(effect);
      this.#writePerson(effect, member);
      for (const group of effect.memberOf) this.#groups.associate(effect, distinctId, group);
    }
    this.#writeGroup(effect);
  }

  #link(effect: EventEffect): void {
    const { projectId, place, link, eventUuid } = effect;
    if (link === undefined) return;
    const refused = new Refused();
    const outcome = this.#members.link(effect, link, refused);
    const { kind, from: a, to: b } = link;
    const atMs = effect.stamp.timeMs;
    this.#links.push({ projectId, place, a, b, kind, atMs, eventUuid, outcome });
    this.#rejectFull(effect, refused, ["person_full", "persons merged"]);
  }

  #writePerson(effect: EventEffect, member: Member): void {
    if (effect.person === undefined) return;
    const refused = new Refused();
    this.#members.write(member, effect.person, { stamp: effect.stamp, refused });
    this.#rejectFull(effect, refused, ["person_full", "person"]);
  }

  #writeGroup(effect: EventEffect): void {
    const { group } = effect;
    if (group === undefined) return;
    const refused = new Refused();
    if (!this.#groups.write(effect, group, refused)) {
      const detail = `more than ${this.#groupTypesMax} group types: ${group.type}`;
      this.#reject(effect, "too_many_group_types", detail);
    }
    this.#rejectFull(effect, refused, ["group_full", "group"]);
  }

  #rejectFull(effect: EventEffect, refused: Refused, [full, where]: BagName): void {
    if (refused.count > 0) this.#reject(effect, full, noRoom(refused, where));
  }

  #reject(effect: EventEffect, reason: RejectedReason, detail: string): void {
    const { projectId, place, eventUuid, receivedAtMs: atMs, eventDistinctId: distinctId } = effect;
    const short = detail.slice(0, detailLengthMax).toWellFormed();
    const row = { projectId, place, eventUuid, atMs, reason, detail: short, distinctId };
    this.#rejected.push(row);
  }

  #touchAgain(projectId: string, id: string, seen: Seen): void {
    const row = this.#members.missing(projectId, id);
    if (row === undefined) return void this.#members.touch(projectId, id, seen);
    this.#wanted.member(projectId, row);
    this.#plainIds.add(projectId, id, seen);
  }

  #want(projectId: string, id: string): void {
    const row = this.#members.missing(projectId, id);
    if (row !== undefined) this.#wanted.member(projectId, row);
  }

  #stampOf(line: PlainLine): Stamp {
    if (line.frame !== this.#frame) {
      this.#frame = line.frame;
      this.#frameRank = frameRank(line.frame);
    }
    return { timeMs: line.timeMs, rank: lineRank(this.#frameRank, line.line) };
  }
}

function isRejected(queued: EventEffect | RejectedRow): queued is RejectedRow {
  return "reason" in queued;
}
