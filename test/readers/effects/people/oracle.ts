// The same rules in the simplest form: sorts all events by their stamps and applies them one by
// one.

import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import { isIllegalId } from "../../../../src/readers/effects/rules/ids.ts";
import { compareStamps } from "../../../../src/readers/effects/stamp.ts";
import type {
  EventEffect,
  GroupRow,
  LinkOutcome,
  MemberRow,
  PropertyWrites,
  Stamp,
} from "../../../../src/readers/effects/types.ts";
import { projectId, type Rows, valuesOf } from "./rows.ts";

const hourMs = 3_600_000;

interface ShownPerson {
  readonly ids: readonly string[];
  readonly uuid: string;
  readonly mainId: string;
  readonly known: boolean;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
  readonly properties: Record<string, string>;
  readonly propertyBytes: number;
}

export interface Shown {
  readonly people: readonly ShownPerson[];
  readonly groups: readonly { readonly name: string }[];
  readonly associations: readonly string[];
  readonly outcomes: readonly string[];
}

/** In an order that does not depend on the history of the rows. */
export function shownBy(rows: Rows): Shown {
  const roots = [...rows.members.values()].filter(({ person }) => person !== undefined);
  return {
    people: roots.map((root) => shownPerson(rows, root)).sort(byFirst),
    groups: [...rows.groups.values()].map(shownGroup).sort(byName),
    associations: [...rows.groupMembers].map(([name, atMs]) => `${name} ${atMs}`).sort(),
    outcomes: rows.links.map(({ eventUuid, outcome }) => `${eventUuid} ${outcome}`).sort(),
  };
}

function shownPerson(rows: Rows, root: MemberRow): ShownPerson {
  const person = root.person!;
  const ids = rows.idsOf(root);
  if (ids.length !== person.idsTotal) throw new Error(`${ids.length} ids, not ${person.idsTotal}`);
  const { mainId, known, createdAtMs, lastSeenAtMs, propertyBytes } = person;
  const shown = { ids, uuid: person.firstUuid, mainId, known, createdAtMs, lastSeenAtMs };
  return { ...shown, properties: valuesOf(person), propertyBytes };
}

function shownGroup(row: GroupRow) {
  const { type, key, createdAtMs, updatedAtMs, propertyBytes } = row;
  const properties = valuesOf(row);
  return { name: `${type}/${key}`, createdAtMs, updatedAtMs, properties, propertyBytes };
}

/**
 * `linkOrder` is the order in which links were applied. All other effects are ordered by stamps.
 */
export function naive(
  effects: readonly EventEffect[],
  options: { linkOrder: readonly EventEffect[]; idsMax: number },
): Shown {
  const sorted = [...effects].sort((a, b) => compareStamps(a.stamp, b.stamp));
  const { sets, outcomes } = linked(options.linkOrder, options.idsMax);
  const touched = new Set<string>();
  for (const effect of effects) {
    for (const id of idsOf(effect, outcomes)) touched.add(id);
  }
  for (const id of touched) setOf(sets, id);
  const people = [...new Set([...touched].map((id) => setOf(sets, id)))];
  return {
    people: people.map((set) => naivePerson(set, sorted, outcomes)).sort(byFirst),
    groups: naiveGroups(sorted).sort(byName),
    associations: naiveAssociations(sorted),
    outcomes: [...outcomes].map(([effect, outcome]) => `${effect.eventUuid} ${outcome}`).sort(),
  };
}

interface IdSet {
  ids: string[];
  known: boolean;
}

function setOf(sets: IdSet[], id: string): IdSet {
  let set = sets.find(({ ids }) => ids.includes(id));
  if (set === undefined) {
    set = { ids: [id], known: false };
    sets.push(set);
  }
  return set;
}

function linked(links: readonly EventEffect[], idsMax: number) {
  const sets: IdSet[] = [];
  const outcomes = new Map<EventEffect, LinkOutcome>();
  for (const effect of links) {
    const { kind, from, to } = effect.link!;
    if ([from, to].some(isIllegalId)) {
      outcomes.set(effect, "refused_illegal_id");
      continue;
    }
    const [one, two] = [setOf(sets, from), setOf(sets, to)];
    let outcome: LinkOutcome = "merged";
    if (from === to) outcome = "refused_self";
    else if (one === two) outcome = "already_one";
    else if (kind !== "merge" && one.known && (two.known || kind === "identify")) {
      outcome = "refused_both_known";
    } else if (one.ids.length + two.ids.length > idsMax) outcome = "refused_cap";
    outcomes.set(effect, outcome);
    if (outcome === "merged") {
      two.ids = [...one.ids, ...two.ids];
      two.known = one.known || two.known;
      sets.splice(sets.indexOf(one), 1);
    }
    if (kind === "identify") setOf(sets, to).known = true;
  }
  return { sets, outcomes };
}

function idsOf(effect: EventEffect, outcomes: ReadonlyMap<EventEffect, LinkOutcome>): string[] {
  const { distinctId, link } = effect;
  if (distinctId === undefined) return [];
  const outcome = outcomes.get(effect);
  if (link === undefined || (outcome !== "merged" && outcome !== "already_one"))
    return [distinctId];
  return [distinctId, link.from === distinctId ? link.to : link.from];
}

function naivePerson(
  set: IdSet,
  sorted: readonly EventEffect[],
  outcomes: ReadonlyMap<EventEffect, LinkOutcome>,
): ShownPerson {
  const mine = sorted.filter((effect) =>
    idsOf(effect, outcomes).some((id) => set.ids.includes(id)),
  );
  const times = mine.map(({ stamp }) => stamp.timeMs);
  const firstId = idsOf(mine[0]!, outcomes)[0]!;
  const links = mine.filter((effect) => idsOf(effect, outcomes).length === 2);
  const bag = new PlainBag();
  for (const { distinctId, person, stamp } of mine) {
    if (person !== undefined && set.ids.includes(distinctId!)) bag.apply(person, stamp);
  }
  return {
    ids: [...set.ids].sort(),
    uuid: personUuid(projectId, firstId),
    mainId: links.at(-1)?.link?.to ?? firstId,
    known: set.known,
    createdAtMs: Math.min(...times),
    lastSeenAtMs: Math.floor(Math.max(...times) / hourMs) * hourMs,
    ...bag.shown(),
  };
}

function naiveGroups(sorted: readonly EventEffect[]) {
  const groups = new Map<string, { times: number[]; bag: PlainBag }>();
  for (const { group, stamp } of sorted) {
    if (group === undefined) continue;
    const name = `${group.type}/${group.key}`;
    const row = groups.get(name) ?? { times: [], bag: new PlainBag() };
    groups.set(name, row);
    row.times.push(stamp.timeMs);
    row.bag.apply(group.set, stamp);
  }
  return [...groups].map(([name, { times, bag }]) => {
    const span = { createdAtMs: Math.min(...times), updatedAtMs: Math.max(...times) };
    return { name, ...span, ...bag.shown() };
  });
}

function naiveAssociations(sorted: readonly EventEffect[]): string[] {
  const seen = new Map<string, number>();
  for (const { distinctId, memberOf, stamp } of sorted) {
    for (const { type, key } of distinctId === undefined ? [] : memberOf) {
      const name = `${type}/${key}/${distinctId}`;
      if (!seen.has(name)) seen.set(name, stamp.timeMs);
    }
  }
  return [...seen].map(([name, atMs]) => `${name} ${atMs}`).sort();
}

class PlainBag {
  readonly #writes = new Map<string, { json: string | null; stamp: Stamp }>();
  readonly #onces = new Map<string, { json: string; stamp: Stamp }>();

  apply({ once, set, unset }: PropertyWrites, stamp: Stamp): void {
    for (const [name, json] of once) {
      if (!this.#onces.has(name)) this.#onces.set(name, { json, stamp });
    }
    for (const [name, json] of set) this.#writes.set(name, { json, stamp });
    for (const name of unset) this.#writes.set(name, { json: null, stamp });
  }

  shown() {
    const properties: Record<string, string> = Object.create(null);
    let propertyBytes = 0;
    for (const name of new Set([...this.#writes.keys(), ...this.#onces.keys()])) {
      const [write, once] = [this.#writes.get(name), this.#onces.get(name)];
      const nameLength = JSON.stringify(name).length - 2;
      propertyBytes += 160 + nameLength + (write?.json?.length ?? 0) + (once?.json.length ?? 0);
      const isOnceShown = !write || (once && compareStamps(once.stamp, write.stamp) > 0);
      const json = write?.json ?? (isOnceShown ? once?.json : undefined);
      if (json !== undefined) properties[name] = json;
    }
    return { properties, propertyBytes };
  }
}

function byFirst(a: ShownPerson, b: ShownPerson): number {
  return a.uuid < b.uuid ? -1 : 1;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
