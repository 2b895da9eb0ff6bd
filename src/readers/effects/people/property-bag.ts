// The properties of a person or group while effects are applied. The stored text needs less memory
// than objects, so it is parsed only at the first write.

import { nameBytes } from "../rules/plain-texts.ts";
import { compareStamps } from "../stamp.ts";
import type {
  LargePropertiesRow,
  PropertyColumns,
  PropertyState,
  PropertyWrites,
  RejectedReason,
  Stamp,
} from "../types.ts";
import { fromColumns, noColumns, toColumns } from "./property-columns.ts";

const stampBytes = 160;
const objectBytes = 200;
const longText = 16_384;

export class Refused {
  count = 0;
  first = "";

  add(name: string): void {
    if (this.count === 0) this.first = name;
    this.count++;
  }
}

export function noRoom({ count, first }: Refused, where: string): string {
  const others = count === 1 ? "" : ` and ${count - 1} more`;
  return `no room in the ${where} for ${first}${others}`;
}

export type PropertiesDropped = (
  table: "members" | "groups",
  row: Readonly<Record<string, string>>,
) => void;

export type BagName = readonly [full: RejectedReason, where: string];

export interface PropertyRoom {
  readonly projectId: string;
  readonly large: LargeProperties;
  readonly bytesMax: number;
  readonly countMax: number;
  readonly refused: Refused;
}

export class PropertyBag {
  #columns: PropertyColumns | undefined;
  #properties: Map<string, PropertyState> | undefined = undefined;
  #bytes: number;

  constructor(columns: PropertyColumns = noColumns, bytes = 0) {
    this.#columns = columns;
    this.#bytes = bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#read().size;
  }

  /**
   * Returns true if the stored columns are consistent. Otherwise, removes all properties and
   * returns false. The caller must call it before it reads or writes the properties.
   */
  isWhole({ projectId, large }: Pick<PropertyRoom, "projectId" | "large">): boolean {
    this.#properties ??= fromColumns(this.#columns ?? noColumns);
    if (this.#properties !== undefined) return true;
    this.#columns = noColumns;
    this.#properties = new Map();
    large.move(projectId, this.#bytes, 0);
    this.#bytes = 0;
    return false;
  }

  get weight(): number {
    const columns = this.#columns;
    const text = columns === undefined ? 0 : weightOf(columns.json) + columns.state.length;
    const properties = this.#properties;
    return properties === undefined ? text : text + this.#bytes + properties.size * objectBytes;
  }

  columns(): PropertyColumns {
    this.#columns ??= toColumns(this.#read());
    this.#properties = undefined;
    return this.#columns;
  }

  write(writes: PropertyWrites, stamp: Stamp, room: PropertyRoom): boolean {
    const properties = this.#read();
    let isChanged = false;
    for (const [name, json] of writes.once) {
      const old = properties.get(name);
      if (old?.once !== undefined && compareStamps(old.once.stamp, stamp) <= 0) continue;
      const next = { write: old?.write, once: { stamp, json } };
      isChanged = this.#put(name, { old, next }, room) || isChanged;
    }
    for (const [name, json] of writes.set) {
      isChanged = this.#putWrite(name, { stamp, json }, room) || isChanged;
    }
    for (const name of writes.unset) {
      isChanged = this.#putWrite(name, { stamp, json: null }, room) || isChanged;
    }
    return isChanged;
  }

  /**
   * Adds the properties of `other`. To save time, `other` should be the smaller bag. The caller
   * must not use `other` afterwards.
   */
  join(other: PropertyBag, room: PropertyRoom): void {
    const properties = this.#read();
    const found = other.#read();
    room.large.move(room.projectId, other.#bytes, 0);
    for (const [name, theirs] of this.#fits(other, room) ? found : sorted(found)) {
      const ours = properties.get(name);
      if (ours === undefined) {
        this.#put(name, { old: ours, next: theirs }, room);
        continue;
      }
      const next = {
        write: newest(ours.write, theirs.write),
        once: oldest(ours.once, theirs.once),
      };
      if (next.write === ours.write && next.once === ours.once) continue;
      this.#put(name, { old: ours, next }, room);
    }
  }

  #fits(other: PropertyBag, { projectId, large, bytesMax, countMax }: PropertyRoom): boolean {
    const bytes = this.#bytes + other.#bytes;
    const isFew = this.size + other.size <= countMax && bytes <= bytesMax;
    return isFew && large.hasRoom(projectId, this.#bytes, bytes);
  }

  #read(): Map<string, PropertyState> {
    if (this.#properties !== undefined) return this.#properties;
    this.#properties = fromColumns(this.#columns ?? noColumns);
    if (this.#properties === undefined)
      throw new Error("cannot read properties: isWhole was not called");
    return this.#properties;
  }

  #putWrite(name: string, write: NonNullable<PropertyState["write"]>, room: PropertyRoom): boolean {
    const old = this.#read().get(name);
    if (old?.write !== undefined && !replaces(write, old.write)) return false;
    return this.#put(name, { old, next: { write, once: old?.once } }, room);
  }

  #put(
    name: string,
    { old, next }: { old: PropertyState | undefined; next: PropertyState },
    room: PropertyRoom,
  ): boolean {
    const properties = this.#read();
    const grown =
      valueBytes(next) - (old === undefined ? -stampBytes - nameBytes(name) : valueBytes(old));
    const isOverCount = old === undefined && properties.size >= room.countMax;
    const [before, after] = [this.#bytes, this.#bytes + grown];
    const isOver = isOverCount || (grown > 0 && after > room.bytesMax);
    if (isOver || !room.large.hasRoom(room.projectId, before, after)) {
      room.refused.add(name);
      return false;
    }
    this.#columns = undefined;
    properties.set(name, next);
    this.#bytes = after;
    room.large.move(room.projectId, before, after);
    return true;
  }
}

function sorted(properties: Map<string, PropertyState>): [string, PropertyState][] {
  return [...properties].sort(([a], [b]) => (a < b ? -1 : 1));
}

function weightOf(text: string): number {
  const isLong = text.length > longText;
  return isLong && Buffer.byteLength(text) > text.length ? 2 * text.length : text.length;
}

function valueBytes({ write, once }: PropertyState): number {
  let bytes = 0;
  if (typeof write?.json === "string") bytes += Buffer.byteLength(write.json);
  if (once !== undefined) bytes += Buffer.byteLength(once.json);
  return bytes;
}

function replaces(
  write: NonNullable<PropertyState["write"]>,
  old: NonNullable<PropertyState["write"]>,
): boolean {
  const order = compareStamps(write.stamp, old.stamp);
  return order > 0 || (order === 0 && old.json !== null);
}

function newest(ours: PropertyState["write"], theirs: PropertyState["write"]) {
  if (ours === undefined) return theirs;
  return theirs !== undefined && compareStamps(theirs.stamp, ours.stamp) > 0 ? theirs : ours;
}

function oldest(ours: PropertyState["once"], theirs: PropertyState["once"]) {
  if (ours === undefined) return theirs;
  return theirs !== undefined && compareStamps(theirs.stamp, ours.stamp) < 0 ? theirs : ours;
}

/** Properties of this size or more are large. A write to large properties takes 0.5 ms or more. */
export const largeBytesMin = 65_536;

/**
 * Limits the total size of the large properties of a project, because each write to a bag reads all
 * of its properties.
 */
export class LargeProperties {
  readonly #bytesMax: number;
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<string>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  begin(rows: readonly LargePropertiesRow[]): void {
    this.#bytes.clear();
    this.#changed.clear();
    for (const { projectId, bytes } of rows) this.#bytes.set(projectId, bytes);
  }

  hasRoom(projectId: string, from: number, to: number): boolean {
    const more = counted(to) - counted(from);
    return more <= 0 || (this.#bytes.get(projectId) ?? 0) + more <= this.#bytesMax;
  }

  move(projectId: string, from: number, to: number): void {
    const more = counted(to) - counted(from);
    if (more === 0) return;
    this.#bytes.set(projectId, (this.#bytes.get(projectId) ?? 0) + more);
    this.#changed.add(projectId);
  }

  takeChanged(): LargePropertiesRow[] {
    const rows = [...this.#changed].map((projectId) => ({
      projectId,
      bytes: this.#bytes.get(projectId)!,
    }));
    this.#changed.clear();
    return rows;
  }
}

function counted(bytes: number): number {
  return bytes > largeBytesMin ? bytes : 0;
}
