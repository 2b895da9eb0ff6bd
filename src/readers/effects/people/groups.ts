// Stores groups, group types, and the distinct ids that were seen with each group. An id may be
// seen with a group that does not exist.

import type { GroupName } from "../store/port.ts";
import type { EventEffect, GroupMemberRow, GroupRow } from "../types.ts";
import {
  type LargeProperties,
  type PropertiesDropped,
  PropertyBag,
  type Refused,
} from "./property-bag.ts";
import { type CachedRow, RowCache } from "./row-cache.ts";

const groupBytes = 500;
const associationBytes = 300;

interface GroupsOptions {
  readonly cacheBytesMax: number;
  readonly propertyBytesMax: number;
  readonly propertiesMax: number;
  readonly large: LargeProperties;
  readonly dropped: PropertiesDropped;
  readonly typesMax: number;
}

type GroupWrites = NonNullable<EventEffect["group"]>;

export class Groups {
  readonly groups: RowCache<Group>;
  readonly types: RowCache<GroupTypes>;
  readonly associations: RowCache<Association>;
  readonly #caches: readonly Pick<RowCache<CachedRow>, "trim" | "committed" | "clear">[];
  readonly #options: GroupsOptions;

  constructor(options: GroupsOptions) {
    this.#options = options;
    this.groups = new RowCache(options.cacheBytesMax / 2);
    this.types = new RowCache(options.cacheBytesMax / 8);
    this.associations = new RowCache((options.cacheBytesMax * 3) / 8);
    this.#caches = [this.groups, this.types, this.associations];
  }

  isHere(projectId: string, group: { type: string; key: string }): boolean {
    return this.groups.get(projectId, groupId(group)) !== undefined;
  }

  areTypesHere(projectId: string): boolean {
    return this.types.get(projectId, "") !== undefined;
  }

  adopt(row: GroupRow): void {
    if (this.isHere(row.projectId, row)) return;
    this.groups.put(new Group(row, new PropertyBag(row.properties, row.propertyBytes)));
  }

  adoptTypes(projectId: string, types: readonly string[]): void {
    if (!this.areTypesHere(projectId)) this.types.put(new GroupTypes(projectId, types));
  }

  write(effect: EventEffect, writes: GroupWrites, refused: Refused): boolean {
    const { projectId, stamp } = effect;
    const types = this.types.get(projectId, "");
    if (types === undefined)
      throw new Error("cannot write a group: its project's types have not been read");
    if (!types.known.has(writes.type)) {
      if (types.known.size >= this.#options.typesMax) return false;
      types.add(writes.type);
      this.types.changed(types);
    }
    const group = this.groups.get(projectId, groupId(writes)) ?? this.#make(effect, writes);
    if (stamp.timeMs < group.createdAtMs || stamp.timeMs > group.updatedAtMs) {
      group.createdAtMs = Math.min(group.createdAtMs, stamp.timeMs);
      group.updatedAtMs = Math.max(group.updatedAtMs, stamp.timeMs);
      this.groups.changed(group);
    }
    const before = group.bytes;
    const { propertyBytesMax: bytesMax, propertiesMax: countMax, large, dropped } = this.#options;
    if (!group.properties.isWhole({ projectId, large })) {
      this.groups.changed(group);
      dropped("groups", { project_id: projectId, type: group.type, key: group.key });
    }
    const room = { projectId, large, bytesMax, countMax, refused };
    const isWritten = group.properties.write(writes.set, stamp, room);
    this.groups.grew(group, group.bytes - before);
    if (isWritten) this.groups.changed(group);
    return true;
  }

  associate(effect: EventEffect, distinctId: string, group: { type: string; key: string }): void {
    const { projectId } = effect;
    const atMs = effect.stamp.timeMs;
    const old = this.associations.get(projectId, associationId(group, distinctId));
    if (old !== undefined && old.firstSeenAtMs <= atMs) return;
    const { type, key } = group;
    const row = old ?? new Association({ projectId, type, key, distinctId, firstSeenAtMs: atMs });
    if (old === undefined) this.associations.put(row);
    row.firstSeenAtMs = atMs;
    this.associations.changed(row);
  }

  trim(): void {
    for (const cache of this.#caches) cache.trim();
  }

  committed(): void {
    for (const cache of this.#caches) cache.committed();
  }

  clear(): void {
    for (const cache of this.#caches) cache.clear();
  }

  #make(effect: EventEffect, { type, key }: GroupWrites): Group {
    const { projectId } = effect;
    const atMs = effect.stamp.timeMs;
    const times = { createdAtMs: atMs, updatedAtMs: atMs, version: 0 };
    const group = new Group({ projectId, type, key, ...times }, new PropertyBag());
    this.groups.put(group);
    this.groups.changed(group);
    return group;
  }
}

class Group implements CachedRow {
  readonly projectId: string;
  readonly type: string;
  readonly key: string;
  readonly id: string;
  createdAtMs: number;
  updatedAtMs: number;
  version: number;
  readonly properties: PropertyBag;
  isChanged = false;

  constructor(row: Omit<GroupRow, "properties" | "propertyBytes">, properties: PropertyBag) {
    this.projectId = row.projectId;
    this.type = row.type;
    this.key = row.key;
    this.id = groupId(row);
    this.createdAtMs = row.createdAtMs;
    this.updatedAtMs = row.updatedAtMs;
    this.version = row.version;
    this.properties = properties;
  }

  get bytes(): number {
    return groupBytes + 4 * this.id.length + this.properties.weight;
  }

  row(): GroupRow {
    this.version++;
    return {
      projectId: this.projectId,
      type: this.type,
      key: this.key,
      createdAtMs: this.createdAtMs,
      updatedAtMs: this.updatedAtMs,
      properties: this.properties.columns(),
      propertyBytes: this.properties.bytes,
      version: this.version,
    };
  }
}

class GroupTypes implements CachedRow {
  readonly projectId: string;
  readonly id = "";
  readonly known: Set<string>;
  #added: string[] = [];
  isChanged = false;

  constructor(projectId: string, types: readonly string[]) {
    this.projectId = projectId;
    this.known = new Set(types);
  }

  get bytes(): number {
    return groupBytes;
  }

  add(type: string): void {
    this.known.add(type);
    this.#added.push(type);
  }

  takeAdded(): { readonly projectId: string; readonly type: string }[] {
    const { projectId } = this;
    const added = this.#added.map((type) => ({ projectId, type }));
    this.#added = [];
    return added;
  }
}

class Association implements CachedRow {
  readonly projectId: string;
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly distinctId: string;
  firstSeenAtMs: number;
  isChanged = false;

  constructor(row: GroupMemberRow) {
    this.projectId = row.projectId;
    this.type = row.type;
    this.key = row.key;
    this.distinctId = row.distinctId;
    this.firstSeenAtMs = row.firstSeenAtMs;
    this.id = associationId(row, row.distinctId);
  }

  get bytes(): number {
    return associationBytes + 2 * this.id.length;
  }

  row(): GroupMemberRow {
    const { projectId, type, key, distinctId, firstSeenAtMs } = this;
    return { projectId, type, key, distinctId, firstSeenAtMs };
  }
}

// NUL is a safe separator, because stored lines do not contain it.
function groupId({ type, key }: Pick<GroupName, "type" | "key">): string {
  return `${type}\0${key}`;
}

function associationId(group: { type: string; key: string }, distinctId: string): string {
  return `${group.type}\0${group.key}\0${distinctId}`;
}
