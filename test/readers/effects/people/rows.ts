import type {
  Loaded,
  People,
  PeopleChanges,
} from "../../../../src/readers/effects/people/people.ts";
import { fromColumns, shownJson } from "../../../../src/readers/effects/people/property-columns.ts";
import type { Missing } from "../../../../src/readers/effects/people/wanted.ts";
import { rankOf } from "../../../../src/readers/effects/stamp.ts";
import type {
  EventEffect,
  GroupRow,
  LargePropertiesRow,
  LinePlace,
  LinkRow,
  MemberRow,
  PropertyColumns,
  PropertyWrites,
  RejectedRow,
} from "../../../../src/readers/effects/types.ts";
import type { StoredFrame } from "../../../../src/readers/stream/frame.ts";
import { idHashOf } from "../line-kit.ts";

export const projectId = "demo";

export type Step = Partial<
  Pick<EventEffect, "distinctId" | "link" | "group" | "memberOf" | "rejections" | "projectId">
> & {
  readonly timeMs: number;
  readonly place?: Partial<LinePlace>;
  readonly person?: Partial<PropertyWrites>;
};

export function effectOf(step: Step): EventEffect {
  const place = {
    lane: "live",
    partition: 0,
    epoch: 1,
    sequence: 1,
    line: 0,
    ...step.place,
  } as const;
  return {
    projectId,
    memberOf: [],
    rejections: [],
    link: undefined,
    group: undefined,
    ...step,
    distinctId: step.distinctId,
    eventDistinctId: step.distinctId ?? "unset",
    place,
    stamp: { timeMs: step.timeMs, rank: rankOf(place) },
    eventUuid: rankOf(place),
    receivedAtMs: step.timeMs,
    person: step.person && { once: [], set: [], unset: [], ...step.person },
  };
}

export function isPlain(effect: EventEffect): boolean {
  const { person, link, group, memberOf, rejections } = effect;
  const parts = [person, link, group, ...memberOf, ...rejections];
  return effect.distinctId !== undefined && parts.every((part) => part === undefined);
}

export function frameOf(effect: EventEffect): StoredFrame {
  const { lane, partition, epoch, sequence } = effect.place;
  const stream = `PENSTOCK_${lane.toUpperCase()}_${partition}`;
  const where = { stream, lane, partition, epoch, sequence };
  const data = new Uint8Array();
  return { ...where, projectId, messageId: "", storedAtMs: effect.receivedAtMs, data };
}

/** The rows in the form of a store: each row replaces the row with the same key. */
export class Rows {
  readonly members = new Map<string, MemberRow>();
  readonly groups = new Map<string, GroupRow>();
  readonly groupTypes = new Set<string>();
  readonly groupMembers = new Map<string, number>();
  readonly links: LinkRow[] = [];
  readonly largeProperties = new Map<string, LargePropertiesRow>();
  readonly rejected: RejectedRow[] = [];

  read(missing: Missing | undefined): Loaded {
    const members = new Map<string, MemberRow>();
    for (const id of missing?.members.get(projectId) ?? []) {
      let row = this.members.get(id);
      while (row !== undefined) {
        members.set(row.distinctId, row);
        row = row.mergedInto === undefined ? undefined : this.members.get(row.mergedInto);
      }
    }
    const groups = (missing?.groups ?? [])
      .map(({ type, key }) => this.groups.get(`${type}/${key}`))
      .filter((row) => row !== undefined);
    const isWanted = missing?.groupTypes.includes(projectId) === true;
    const groupTypes = isWanted ? [...this.groupTypes].map((type) => ({ projectId, type })) : [];
    return { members: [...members.values()], groups, groupTypes };
  }

  write(changes: PeopleChanges): void {
    for (const row of changes.members) this.members.set(row.distinctId, row);
    for (const row of changes.groups) this.groups.set(`${row.type}/${row.key}`, row);
    for (const { type } of changes.groupTypes) this.groupTypes.add(type);
    for (const { type, key, distinctId, firstSeenAtMs } of changes.groupMembers) {
      const name = `${type}/${key}/${distinctId}`;
      const old = this.groupMembers.get(name) ?? firstSeenAtMs;
      this.groupMembers.set(name, Math.min(old, firstSeenAtMs));
    }
    for (const row of changes.largeProperties) this.largeProperties.set(row.projectId, row);
    this.links.push(...changes.links);
    this.rejected.push(...changes.rejected);
  }

  personOf(id: string): MemberRow | undefined {
    let row = this.members.get(id);
    while (row?.mergedInto !== undefined) row = this.members.get(row.mergedInto);
    return row;
  }

  idsOf(root: MemberRow): string[] {
    const ids = [...this.members.keys()].filter((id) => this.personOf(id) === root);
    return ids.sort();
  }
}

export function seenLine(
  project: string,
  distinctId: string,
  timeMs: number,
): Parameters<People["seen"]>[0] {
  return { projectId: project, distinctId, timeMs, ...idHashOf(distinctId) };
}

export function changesOf(people: People): PeopleChanges {
  const steps = people.changes();
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

export function applyBatch(
  people: People,
  rows: Rows,
  effects: readonly EventEffect[],
): PeopleChanges {
  for (const effect of effects) {
    const { distinctId = "", place, stamp } = effect;
    if (!isPlain(effect)) people.add(effect);
    else if (!people.seen(seenLine(projectId, distinctId, stamp.timeMs))) {
      const { line } = place;
      people.touch({ frame: frameOf(effect), line, projectId, distinctId, timeMs: stamp.timeMs });
    }
  }
  const missing = people.missing();
  if (missing !== undefined) people.adopt(rows.read(missing));
  people.apply();
  return changesOf(people);
}

export function applyAll(people: People, rows: Rows, steps: readonly Step[]): PeopleChanges {
  const changes = applyBatch(people, rows, steps.map(effectOf));
  rows.write(changes);
  people.committed();
  return changes;
}

export function valuesOf(of: { properties: PropertyColumns } | undefined): Record<string, string> {
  const shown: Record<string, string> = Object.create(null);
  for (const [name, state] of of === undefined ? [] : fromColumns(of.properties)!) {
    const json = shownJson(state);
    if (json !== undefined) shown[name] = json;
  }
  return shown;
}
