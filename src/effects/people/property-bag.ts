// The properties of a person or a group while effects are applied to them: joined key by key, so
// the order of writes does not matter as long as all of them fit. Hands out snapshots that stay as
// they are; the first write after one copies the map.

import { compareStamps } from "../stamp.ts";
import type { Properties, PropertyState, PropertyWrites, Stamp } from "../types.ts";

/**
 * What a property counts beside its name and value: about what its stamps and its place in a map
 * take in memory, so that a million names of one letter are not free.
 */
const stampBytes = 160;

/** Names that found no room. */
export class Refused {
  count = 0;
  first = "";

  add(name: string): void {
    if (this.count === 0) this.first = name;
    this.count++;
  }
}

/** What is said of them. */
export function noRoom({ count, first }: Refused, where: string): string {
  const others = count === 1 ? "" : ` and ${count - 1} more`;
  return `no room in the ${where} for ${first}${others}`;
}

const nothing: Properties = new Map();

export class PropertyBag {
  // Never written to while it is shared.
  #properties: Map<string, PropertyState>;
  #isShared = true;
  #bytes: number;

  /** `properties` stays as it is. */
  constructor(properties: Properties = nothing, bytes = 0) {
    this.#properties = properties as Map<string, PropertyState>;
    this.#bytes = bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#properties.size;
  }

  snapshot(): Properties {
    this.#isShared = true;
    return this.#properties;
  }

  /** What one event writes. Tells whether anything changed; names without room go to `refused`. */
  write(
    writes: PropertyWrites,
    stamp: Stamp,
    room: { bytesMax: number; refused: Refused },
  ): boolean {
    let isChanged = false;
    for (const [name, json] of writes.once) {
      const old = this.#properties.get(name);
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

  /** Takes over all that `other` has, which the smaller of two should be. */
  join(other: PropertyBag, room: { bytesMax: number; refused: Refused }): void {
    for (const [name, theirs] of other.#properties) {
      const ours = this.#properties.get(name);
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

  #putWrite(
    name: string,
    write: NonNullable<PropertyState["write"]>,
    room: { bytesMax: number; refused: Refused },
  ): boolean {
    const old = this.#properties.get(name);
    if (old?.write !== undefined && !replaces(write, old.write)) return false;
    return this.#put(name, { old, next: { write, once: old?.once } }, room);
  }

  #put(
    name: string,
    { old, next }: { old: PropertyState | undefined; next: PropertyState },
    room: { bytesMax: number; refused: Refused },
  ): boolean {
    const grown = valueBytes(next) - (old === undefined ? -nameBytes(name) : valueBytes(old));
    if (grown > 0 && this.#bytes + grown > room.bytesMax) {
      room.refused.add(name);
      return false;
    }
    if (this.#isShared) {
      this.#properties = new Map(this.#properties);
      this.#isShared = false;
    }
    this.#properties.set(name, next);
    this.#bytes += grown;
    return true;
  }
}

function nameBytes(name: string): number {
  return stampBytes + Buffer.byteLength(name);
}

function valueBytes({ write, once }: PropertyState): number {
  let bytes = 0;
  if (typeof write?.json === "string") bytes += Buffer.byteLength(write.json);
  if (once !== undefined) bytes += Buffer.byteLength(once.json);
  return bytes;
}

/** Within one event an `$unset` beats a `$set`, in whichever order they come. */
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
