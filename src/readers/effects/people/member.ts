import type { MemberRow, PersonState, Stamp } from "../types.ts";
import { personUuid } from "./person-uuid.ts";
import { PropertyBag } from "./property-bag.ts";
import type { CachedRow } from "./row-cache.ts";

export const hourMs = 3_600_000;

// Approximate bytes of the objects in V8, without their texts.
const memberBytes = 300;
const personBytes = 250;

export class Person {
  firstId: string;
  firstStamp: Stamp;
  firstUuid: string;
  /** The main id of the newest link. Undefined if there was no link. */
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
  /** The distinct id. */
  readonly id: string;
  readonly uuid: string;
  first: Stamp;
  mergedInto: string | undefined = undefined;
  person: Person | undefined = undefined;
  isChanged = false;
  /**
   * Events from `quietFromS` (inclusive) to `quietToS` (exclusive) change nothing. In whole
   * seconds, because V8 stores small integers inside the object. Joins only extend the range.
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

  /** Returns a copy. Counts as a write. */
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

export function newMember(projectId: string, id: string, first: Stamp): Member {
  const uuid = personUuid(projectId, id);
  const member = new Member({ projectId, id, uuid }, first);
  member.person = new Person({ id, stamp: first, uuid }, first.timeMs);
  return member;
}

export function memberFrom(row: MemberRow): Member {
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

export function hourOf(timeMs: number): number {
  return Math.floor(timeMs / hourMs) * hourMs;
}
