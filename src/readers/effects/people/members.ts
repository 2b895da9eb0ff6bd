// Maps distinct ids to persons. When two persons are merged, the row of the merged person gets a
// pointer to the row of the surviving person (union-find).

import type { StoredLine } from "../lines/line.ts";
import { isIllegalId } from "../rules/ids.ts";
import { compareStamps, stampOfOtherId } from "../stamp.ts";
import type {
  EventEffect,
  LinkKind,
  LinkOutcome,
  MemberRow,
  PersonState,
  PropertyWrites,
  Stamp,
} from "../types.ts";
import { personUuid } from "./person-uuid.ts";
import {
  type LargeProperties,
  type PropertiesDropped,
  PropertyBag,
  type PropertyRoom,
  type Refused,
} from "./property-bag.ts";
import { type CachedRow, RowCache } from "./row-cache.ts";
import type { Seen } from "./wanted.ts";

const recentMembers = 65_536;

interface MembersOptions {
  readonly cacheBytesMax: number;
  readonly idsMax: number;
  readonly propertyBytesMax: number;
  readonly propertiesMax: number;
  readonly large: LargeProperties;
  readonly dropped: PropertiesDropped;
  readonly depthMax: number;
}

export type SeenLine = Pick<StoredLine, "projectId" | "distinctId" | "idHashHigh" | "timeMs">;

const newSide: LinkSide = { known: false, idsTotal: 1 };

export class Members {
  readonly rows: RowCache<Member>;
  readonly #options: MembersOptions;
  /** Recently seen members, indexed by the hash of their ids. This is faster than a Map. */
  readonly #recent: (Member | undefined)[];
  #recentGeneration = 0;
  #absentProjectId = "";
  #absentId: string | undefined = undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#recent = new Array<undefined>(recentMembers).fill(undefined);
    this.rows = new RowCache(options.cacheBytesMax);
  }

  seen({ projectId, distinctId: id, idHashHigh, timeMs }: SeenLine): boolean {
    const member = this.#recentOf(projectId, id, idHashHigh);
    if (member === undefined) {
      this.#absentProjectId = projectId;
      this.#absentId = id;
      return false;
    }
    if (timeMs >= member.quietFromS * 1000 && timeMs < member.quietToS * 1000) return true;
    if (timeMs <= member.first.timeMs) return false;
    const person = (member.mergedInto === undefined ? member : this.#root(member))?.person;
    if (person === undefined || timeMs >= person.lastSeenAtMs + hourMs) return false;
    member.noteQuiet(person);
    return true;
  }

  #recentOf(projectId: string, id: string, idHash: number): Member | undefined {
    const recent = this.#recent;
    if (this.#recentGeneration !== this.rows.generation) {
      this.#recentGeneration = this.rows.generation;
      recent.fill(undefined);
    }
    const place = idHash & (recentMembers - 1);
    const last = recent[place];
    if (last !== undefined && last.id === id && last.projectId === projectId) return last;
    const member = this.rows.get(projectId, id);
    if (member !== undefined) recent[place] = member;
    return member;
  }

  missing(projectId: string, id: string): string | undefined {
    if (id === this.#absentId && projectId === this.#absentProjectId) return id;
    let at = id;
    for (let depth = 0; depth <= this.#options.depthMax; depth++) {
      const member = this.rows.get(projectId, at);
      if (member === undefined) return at;
      if (member.mergedInto === undefined) return undefined;
      at = member.mergedInto;
    }
    throw new Error(lost(projectId, id));
  }

  adopt(row: MemberRow): void {
    if (this.rows.get(row.projectId, row.distinctId) !== undefined) return;
    this.#put(memberFrom(row));
  }

  #make(projectId: string, id: string, { stamp, lastMs }: Seen): Member {
    const member = newMember(projectId, id, stamp);
    member.person!.lastSeenAtMs = hourOf(lastMs);
    this.#put(member);
    this.rows.changed(member);
    return member;
  }

  touch(projectId: string, id: string, seen: Seen): Member {
    const { stamp, lastMs } = seen;
    const member = this.rows.get(projectId, id);
    if (member === undefined) return this.#make(projectId, id, seen);
    if (compareStamps(stamp, member.first) < 0) {
      member.first = stamp;
      this.rows.changed(member);
    }
    const root = this.#personRow(member);
    const person = root.person;
    if (compareStamps(stamp, person.firstStamp) < 0) {
      person.firstStamp = stamp;
      person.firstId = member.id;
      person.firstUuid = member.uuid;
      this.rows.changed(root);
    }
    const hour = hourOf(lastMs);
    if (hour > person.lastSeenAtMs) {
      person.lastSeenAtMs = hour;
      this.rows.changed(root);
    }
    return member;
  }

  write(member: Member, writes: PropertyWrites, by: { stamp: Stamp; refused: Refused }): void {
    const root = this.#personRow(member);
    const { properties } = root.person;
    const before = properties.weight;
    this.#checkProperties(root);
    const isWritten = properties.write(writes, by.stamp, this.#roomFor(root.projectId, by.refused));
    this.rows.grew(root, properties.weight - before);
    if (isWritten) this.rows.changed(root);
  }

  link(effect: EventEffect, link: NonNullable<EventEffect["link"]>, refused: Refused): LinkOutcome {
    const { projectId, stamp } = effect;
    if (isIllegalId(link.from) || isIllegalId(link.to)) return "refused_illegal_id";
    const own = link.kind === "identify" ? link.to : link.from;
    const ownMember = this.touch(projectId, own, { stamp, lastMs: stamp.timeMs });
    const outcome = this.#linkLegal(ownMember, effect, { ...link, refused });
    if (link.kind !== "identify") return outcome;
    const target = this.#personRow(ownMember);
    if (!target.person.known) {
      target.person.known = true;
      this.rows.changed(target);
    }
    return outcome;
  }

  #linkLegal(
    own: Member,
    effect: EventEffect,
    link: NonNullable<EventEffect["link"]> & { readonly refused: Refused },
  ): LinkOutcome {
    const otherId = own.id === link.to ? link.from : link.to;
    if (otherId === own.id) return "refused_self";
    const ownRoot = this.#personRow(own);
    const other = this.rows.get(own.projectId, otherId);
    const otherRoot = other === undefined ? undefined : this.#personRow(other);
    let outcome: LinkOutcome = "already_one";
    if (ownRoot !== otherRoot) {
      const [ownSide, otherSide] = [ownRoot.person, otherRoot?.person ?? newSide];
      const isToOwn = own.id === link.to;
      const sides = isToOwn ? { from: otherSide, to: ownSide } : { from: ownSide, to: otherSide };
      outcome = outcomeOfTwo(link.kind, sides, this.#options.idsMax);
      if (outcome !== "merged") return outcome;
    }
    const { stamp } = effect;
    const seen = { stamp: stampOfOtherId(stamp), lastMs: stamp.timeMs };
    const touched = this.touch(own.projectId, otherId, seen);
    const touchedRoot = this.#personRow(touched);
    const root =
      ownRoot === touchedRoot
        ? ownRoot
        : own.id === link.to
          ? this.#merge(touchedRoot, ownRoot, link.refused)
          : this.#merge(ownRoot, touchedRoot, link.refused);
    if (root.person.main === undefined || compareStamps(stamp, root.person.main.stamp) > 0) {
      root.person.main = { id: link.to, stamp };
      this.rows.changed(root);
    }
    return outcome;
  }

  /** The person with more ids survives, so that chains of pointers stay short. */
  #merge(from: PersonRow, to: PersonRow, refused: Refused): PersonRow {
    const survives = to.person.idsTotal >= from.person.idsTotal;
    const [loser, survivor] = survives ? [from, to] : [to, from];
    const [theirs, ours] = [loser.person, survivor.person];
    const [before, loserBefore] = [survivor.bytes, loser.bytes];
    this.#checkProperties(loser);
    this.#checkProperties(survivor);
    joinPersons(theirs, ours);
    joinProperties(theirs, ours, this.#roomFor(to.projectId, refused));
    this.rows.grew(survivor, survivor.bytes - before);
    const merged: Member = loser;
    merged.person = undefined;
    merged.mergedInto = survivor.id;
    this.rows.grew(merged, merged.bytes - loserBefore);
    this.rows.changed(loser);
    this.rows.changed(survivor);
    return survivor;
  }

  #checkProperties(root: PersonRow): void {
    const { large, dropped } = this.#options;
    const { projectId, uuid } = root;
    if (root.person.properties.isWhole({ projectId, large })) return;
    this.rows.changed(root);
    dropped("members", { project_id: projectId, uuid });
  }

  #roomFor(projectId: string, refused: Refused): PropertyRoom {
    const { propertyBytesMax: bytesMax, propertiesMax: countMax, large } = this.#options;
    return { projectId, large, bytesMax, countMax, refused };
  }

  #personRow(member: Member): PersonRow {
    if (isPersonRow(member)) return member;
    const root = this.#root(member);
    if (root === undefined || !isPersonRow(root)) {
      throw new Error(
        `cannot find the person of a distinct id: the rows of ${member.id} have not been read`,
      );
    }
    let at = member;
    while (at.mergedInto !== undefined && at.mergedInto !== root.id) {
      const next = this.rows.get(at.projectId, at.mergedInto)!;
      at.mergedInto = root.id;
      this.rows.changed(at);
      at = next;
    }
    return root;
  }

  #put(member: Member): void {
    this.#absentId = undefined;
    this.rows.put(member);
  }

  #root(member: Member): Member | undefined {
    let at: Member | undefined = member;
    for (let depth = 0; depth <= this.#options.depthMax; depth++) {
      if (at?.mergedInto === undefined) return at;
      at = this.rows.get(at.projectId, at.mergedInto);
    }
    throw new Error(lost(member.projectId, member.id));
  }
}

function lost(projectId: string, id: string): string {
  return `cannot find the person of the distinct id ${JSON.stringify(id)} of project ${projectId}: its row in the table members is part of a cycle, which another program has caused: rebuild the database with \`penstock effects rebuild\``;
}

type PersonRow = Member & { person: Person };

function isPersonRow(member: Member): member is PersonRow {
  return member.person !== undefined;
}

function joinPersons(theirs: Person, ours: Person): void {
  if (compareStamps(theirs.firstStamp, ours.firstStamp) < 0) {
    ours.firstStamp = theirs.firstStamp;
    ours.firstId = theirs.firstId;
    ours.firstUuid = theirs.firstUuid;
  }
  const [main, other] = [ours.main, theirs.main];
  if (main === undefined || (other !== undefined && compareStamps(other.stamp, main.stamp) > 0)) {
    ours.main = other;
  }
  ours.known ||= theirs.known;
  ours.lastSeenAtMs = Math.max(ours.lastSeenAtMs, theirs.lastSeenAtMs);
  ours.idsTotal += theirs.idsTotal;
}

function joinProperties(theirs: Person, ours: Person, room: PropertyRoom): void {
  const [small, large] =
    theirs.properties.size > ours.properties.size
      ? [ours.properties, theirs.properties]
      : [theirs.properties, ours.properties];
  large.join(small, room);
  ours.properties = large;
}

interface LinkSide {
  readonly known: boolean;
  readonly idsTotal: number;
}

/**
 * Checks a link between two persons. The order of the checks must not change, because the first
 * failing check decides which reason is stored.
 */
function outcomeOfTwo(
  kind: LinkKind,
  sides: { from: LinkSide; to: LinkSide },
  idsMax: number,
): LinkOutcome {
  const { from, to } = sides;
  const isTargetKnown = kind === "identify" || to.known;
  if (kind !== "merge" && from.known && isTargetKnown) return "refused_both_known";
  return from.idsTotal + to.idsTotal > idsMax ? "refused_cap" : "merged";
}

const hourMs = 3_600_000;

const memberBytes = 300;
const personBytes = 250;

class Person {
  firstId: string;
  firstStamp: Stamp;
  firstUuid: string;
  main: { readonly id: string; readonly stamp: Stamp } | undefined = undefined;
  known = false;
  lastSeenAtMs: number;
  idsTotal = 1;
  version = 0;
  properties: PropertyBag;

  constructor(first: { id: string; stamp: Stamp; uuid: string }, lastMs: number) {
    this.firstId = first.id;
    this.firstStamp = first.stamp;
    this.firstUuid = first.uuid;
    this.lastSeenAtMs = hourOf(lastMs);
    this.properties = new PropertyBag();
  }

  get createdAtMs(): number {
    return this.firstStamp.timeMs;
  }

  get bytes(): number {
    return personBytes + this.properties.weight;
  }

  row(): PersonState {
    return {
      firstId: this.firstId,
      firstStamp: this.firstStamp,
      firstUuid: this.firstUuid,
      mainId: this.main === undefined ? this.firstId : this.main.id,
      mainStamp: this.main?.stamp,
      known: this.known,
      createdAtMs: this.createdAtMs,
      lastSeenAtMs: this.lastSeenAtMs,
      idsTotal: this.idsTotal,
      properties: this.properties.columns(),
      propertyBytes: this.properties.bytes,
      version: this.version,
    };
  }
}

export class Member implements CachedRow {
  readonly projectId: string;
  readonly id: string;
  readonly uuid: string;
  first: Stamp;
  mergedInto: string | undefined = undefined;
  person: Person | undefined = undefined;
  isChanged = false;
  /**
   * Events between `quietFromS` and `quietToS` do not change the row. Both times are in seconds,
   * because V8 stores small integers without an allocation.
   */
  quietFromS = 0;
  quietToS = 0;

  constructor(name: { projectId: string; id: string; uuid: string }, first: Stamp) {
    this.projectId = name.projectId;
    this.id = name.id;
    this.uuid = name.uuid;
    this.first = first;
  }

  get bytes(): number {
    return memberBytes + 2 * this.id.length + (this.person?.bytes ?? 0);
  }

  noteQuiet(person: Person): void {
    this.quietFromS = Math.floor(this.first.timeMs / 1000) + 1;
    this.quietToS = (person.lastSeenAtMs + hourMs) / 1000;
  }

  row(): MemberRow {
    if (this.person !== undefined) this.person.version++;
    return {
      projectId: this.projectId,
      distinctId: this.id,
      uuid: this.uuid,
      first: this.first,
      mergedInto: this.mergedInto,
      person: this.person?.row(),
    };
  }
}

function newMember(projectId: string, id: string, first: Stamp): Member {
  const uuid = personUuid(projectId, id);
  const member = new Member({ projectId, id, uuid }, first);
  member.person = new Person({ id, stamp: first, uuid }, first.timeMs);
  return member;
}

function memberFrom(row: MemberRow): Member {
  const { projectId, distinctId: id, uuid, first, person: state } = row;
  const member = new Member({ projectId, id, uuid }, first);
  member.mergedInto = row.mergedInto;
  if (state === undefined) return member;
  const firstOfPerson = { id: state.firstId, stamp: state.firstStamp, uuid: state.firstUuid };
  const person = new Person(firstOfPerson, state.lastSeenAtMs);
  if (state.mainStamp !== undefined) person.main = { id: state.mainId, stamp: state.mainStamp };
  person.known = state.known;
  person.idsTotal = state.idsTotal;
  person.version = state.version;
  person.properties = new PropertyBag(state.properties, state.propertyBytes);
  member.person = person;
  return member;
}

function hourOf(timeMs: number): number {
  return Math.floor(timeMs / hourMs) * hourMs;
}
