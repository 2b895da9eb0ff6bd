// Converts an event to its effects without the database. The functions never throw because of the
// content of an event.

import { Buffer } from "node:buffer";
import { isNothing } from "../../../records/item-view.ts";
import { JsonMembers } from "../../../records/json-members.ts";
import { TokenType } from "../../../records/table.ts";
import { Kind } from "../../../records/verdict.ts";
import type { EventEffect, LinePlace, LinkKind, PropertyWrites } from "../types.ts";
import { type EventFacts, Span, SpecialEvent } from "./event-facts.ts";
import { cookielessId, idText } from "./ids.ts";
import type { PlainTexts } from "./plain-texts.ts";
import { PropertyWritesReader } from "./property-writes.ts";

/** Maximum number of groups of an event. Each group adds a row, which takes time to write. */
const eventGroupsMax = 5;
/** Maximum bytes of the ids in a row. A PostgreSQL index entry can store 2,704 bytes. */
const rowIdsBytesMax = 2_400;
const nameBytesMax = 17;

const DOLLAR = 0x24;
const LETTER_A = 0x61;
const LETTER_G = 0x67;
const aliasLength = 5;

const noBytes = Buffer.alloc(0);
const absent = new Span();
const noGroups: EventEffect["memberOf"] = [];

export function makesPerson({ kind, personProfile, distinctId }: EventFacts): boolean {
  return personProfile && kind !== Kind.GroupIdentify && distinctId !== cookielessId;
}

/**
 * Returns true if the event has no effect except that it may create a person or update its
 * last-seen time. If `hasWrites` is false, the facts about groups and person fields are not read.
 */
export function isPlainEvent(facts: EventFacts, hasWrites: boolean): boolean {
  if (facts.kind === Kind.GroupIdentify) return false;
  if (!makesPerson(facts)) return true;
  if (hasWrites && !isNothing(facts.groupsType)) return false;
  if (facts.special === SpecialEvent.Automatic) return true;
  if (linkKindOf(facts) !== undefined) return false;
  if (!hasWrites) return true;
  return (
    isEmpty(facts.set) &&
    isEmpty(facts.setOnce) &&
    isEmpty(facts.unset) &&
    isEmpty(facts.nestedSet) &&
    isEmpty(facts.nestedSetOnce) &&
    isEmpty(facts.nestedUnset)
  );
}

function isEmpty({ start, end, type }: Span): boolean {
  if (type === TokenType.Object || type === TokenType.Array) return end - start === 2;
  return isNothing(type);
}

const propertyNames = [
  "$anon_distinct_id",
  "alias",
  "$groups",
  "$group_type",
  "$group_key",
  "$group_set",
  "$group_unset",
] as const;
type NamedProperties = Readonly<Record<(typeof propertyNames)[number], Span>>;

export class EffectRules {
  readonly #texts: PlainTexts;
  readonly #writes: PropertyWritesReader;
  readonly #named = Object.fromEntries(
    propertyNames.map((name) => [name, new Span()]),
  ) as NamedProperties;
  readonly #spanByName: ReadonlyMap<string, Span> = new Map(Object.entries(this.#named));
  readonly #members = new JsonMembers(noBytes);

  constructor(texts: PlainTexts) {
    this.#texts = texts;
    this.#writes = new PropertyWritesReader(texts);
  }

  effectOf(facts: EventFacts, place: LinePlace, rank: string): EventEffect {
    const writes = this.#writes;
    writes.begin();
    const isGroup = facts.kind === Kind.GroupIdentify;
    const isPerson = makesPerson(facts);
    const linkKind = isPerson ? linkKindOf(facts) : undefined;
    const reads = isGroup || linkKind !== undefined || (isPerson && !isNothing(facts.groupsType));
    const named = reads ? this.#readNamed(facts.body, facts.properties) : undefined;
    const person =
      isPerson && facts.special !== SpecialEvent.Automatic ? this.#personOf(facts) : undefined;
    return {
      projectId: facts.projectId,
      stamp: { timeMs: facts.timeMs, rank },
      place,
      eventUuid: uuidText(facts),
      receivedAtMs: facts.receivedAtMs,
      distinctId: isPerson ? facts.distinctId : undefined,
      eventDistinctId: facts.distinctId,
      person,
      link:
        linkKind === undefined || named === undefined
          ? undefined
          : this.#linkOf(facts, linkKind, named),
      group: isGroup && named !== undefined ? this.#groupOf(facts.body, named) : undefined,
      memberOf: isPerson && named !== undefined ? this.#groupsOf(facts, named.$groups) : noGroups,
      rejections: writes.end(),
    };
  }

  #readNamed(body: Buffer, properties: Span): NamedProperties {
    for (const span of this.#spanByName.values()) span.type = TokenType.Absent;
    if (properties.type !== TokenType.Object) return this.#named;
    const members = this.#members;
    members.begin(body, properties.start, properties.end);
    while (members.next()) {
      const { nameStart, nameEnd, nameHasEscape } = members;
      const length = nameEnd - nameStart;
      if (!nameHasEscape && !mayBeNamed(body, nameStart, length)) continue;
      if (length > 6 * nameBytesMax) continue;
      const span = this.#spanByName.get(this.#texts.nameOf(body, nameStart, nameEnd));
      if (span === undefined) continue;
      span.start = members.valueStart;
      span.end = members.valueEnd;
      span.type = members.valueType;
    }
    return this.#named;
  }

  #personOf(facts: EventFacts): PropertyWrites | undefined {
    const { body } = facts;
    const once = this.#writes.membersOf(body, {
      field: "$set_once",
      top: facts.setOnce,
      nested: facts.nestedSetOnce,
    });
    const set = this.#writes.membersOf(body, {
      field: "$set",
      top: facts.set,
      nested: facts.nestedSet,
    });
    const unset = this.#writes.namesOf(body, {
      field: "$unset",
      top: facts.unset,
      nested: facts.nestedUnset,
    });
    return once.length + set.length + unset.length === 0 ? undefined : { once, set, unset };
  }

  #linkOf(
    { body, distinctId }: EventFacts,
    kind: LinkKind,
    named: NamedProperties,
  ): EventEffect["link"] {
    const span = kind === "identify" ? named.$anon_distinct_id : named.alias;
    if (isNothing(span.type) || span.type === TokenType.EmptyString) {
      if (kind !== "identify") this.#writes.reject("alias", "invalid_field", "it has no alias");
      return undefined;
    }
    const other = this.#textOf(body, span);
    if (!this.#fits(kind === "identify" ? "$anon_distinct_id" : "alias", [distinctId, other]))
      return undefined;
    return kind === "identify"
      ? { kind, from: other, to: distinctId }
      : { kind, from: distinctId, to: other };
  }

  #groupOf(body: Buffer, named: NamedProperties): EventEffect["group"] {
    const type = this.#textOf(body, named.$group_type);
    const key = this.#textOf(body, named.$group_key);
    if (type === "" || key === "") {
      const field = type === "" ? "$group_type" : "$group_key";
      this.#writes.reject(field, "invalid_field", `its ${field} is absent or blank`);
      return undefined;
    }
    if (!this.#fits("$group_key", [type, key])) return undefined;
    const top = absent;
    const writes = this.#writes;
    const set = writes.membersOf(body, { field: "$group_set", top, nested: named.$group_set });
    const unset = writes.namesOf(body, { field: "$group_unset", top, nested: named.$group_unset });
    return { type, key, set: { once: [], set, unset } };
  }

  #groupsOf({ body, distinctId }: EventFacts, groups: Span): EventEffect["memberOf"] {
    if (groups.type !== TokenType.Object) {
      if (!isEmpty(groups))
        this.#writes.reject("$groups", "invalid_field", "$groups is not an object");
      return noGroups;
    }
    const found = new Map<string, string>();
    const members = this.#members;
    members.begin(body, groups.start, groups.end);
    while (members.next()) {
      const { nameStart, nameEnd, nameHasEscape, valueStart, valueEnd, valueType } = members;
      const nameType = nameHasEscape ? TokenType.EscapedString : TokenType.PlainString;
      const type = idText(body, nameStart - 1, nameEnd + 1, nameType);
      const span = { start: valueStart, end: valueEnd, type: valueType };
      const key = this.#textOf(body, span);
      // SDKs send null or "" for a group after the person has left the group.
      if (type === "") continue;
      if (key === "") found.delete(type);
      else if (!this.#fits("$groups", [type, key, distinctId])) continue;
      else if (found.size < eventGroupsMax || found.has(type)) found.set(type, key);
      else {
        const detail = `an event may name at most ${eventGroupsMax} groups`;
        this.#writes.reject("$groups", "too_many_group_types", detail);
      }
    }
    return [...found].map(([type, key]) => ({ type, key }));
  }

  #fits(field: string, ids: readonly string[]): boolean {
    let bytes = 0;
    for (const id of ids) bytes += Buffer.byteLength(id);
    if (bytes <= rowIdsBytesMax) return true;
    const detail = `its ids have ${bytes} bytes together; the maximum is ${rowIdsBytesMax}`;
    this.#writes.reject(field, "invalid_field", detail);
    return false;
  }

  #textOf(body: Buffer, { start, end, type }: Span): string {
    if (isNothing(type) || type === TokenType.EmptyString) return "";
    const plain =
      type === TokenType.Object || type === TokenType.Array
        ? this.#texts.valueOf(body, start, end)
        : undefined;
    // If the value is nested too deeply to be normalised, the original text is used.
    if (plain === undefined) return idText(body, start, end, type);
    const bytes = Buffer.from(plain);
    return idText(bytes, 0, bytes.length, type);
  }
}

function mayBeNamed(body: Buffer, start: number, length: number): boolean {
  if (body[start] !== DOLLAR) return body[start] === LETTER_A && length === aliasLength;
  return length <= nameBytesMax && (body[start + 1] === LETTER_A || body[start + 1] === LETTER_G);
}

function linkKindOf({ kind, special }: EventFacts): LinkKind | undefined {
  if (special === SpecialEvent.Automatic) return undefined;
  if (kind === Kind.Identify) return "identify";
  if (kind === Kind.Alias) return "alias";
  return special === SpecialEvent.Merge ? "merge" : undefined;
}

function uuidText({ uuidBody, uuidAt }: EventFacts): string {
  return uuidBody.toString("latin1", uuidAt, uuidAt + 36).toLowerCase();
}
