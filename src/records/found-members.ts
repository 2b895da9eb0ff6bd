// The layout of the members that the addon finds by their names. The C++ side
// (addon/find_members.h) has the same numbers. Loading the addon compares both.

import { Buffer } from "node:buffer";

/** The words of an entry. Entries of a row are in the order of its properties. */
export const Found = {
  /** Index of the item's row in the table. */
  Row: 0,
  /** The number of the path, or a value of FoundPath. */
  Path: 1,
  /** Offset of the object that has the member. */
  Container: 2,
  /** Index of the member in its object, from 0. In an entry of an object: number of its members. */
  Ordinal: 3,
  /** Offset of the name's opening quote. */
  Start: 4,
  ValueStart: 5,
  ValueEnd: 6,
  /** The TokenType of the value. In an entry of an object: its level. */
  Type: 7,
  Words: 8,
} as const;

export const FoundPath = {
  /** A member of `properties` that has no path. Listed only on request. */
  Unnamed: 0,
  /** The object itself. Follows the entries of its members. Listed only on request. */
  Container: 0xffff_ffff,
} as const;

/** The words of a slot in a hash table of names. NameEnd is 0 in a free slot. */
export const NameSlot = {
  Hash: 0,
  NameStart: 1,
  NameEnd: 2,
  /** The level of the object that has the member. */
  Level: 3,
  /** The number of the path; 0 if only members of the member's value have a path. */
  Path: 4,
  /** The level of the member's value, if members of it have a path; else 0. */
  InnerLevel: 5,
  Words: 6,
} as const;

/** The levels of objects. Other objects inside `properties` have higher levels. */
export const MemberLevel = {
  Properties: 0,
  /** `$set` of the event or of its `properties`. */
  Set: 1,
  SetOnce: 2,
} as const;

/** The words of the argument `place`. The indexes of the rows follow, ascending. */
export const MemberPlace = {
  RowCount: 0,
  ListsAll: 1,
  HasPersonPaths: 2,
  ListsContainers: 3,
  FirstRow: 4,
} as const;

export interface MemberFinder {
  /**
   * Lists members of plain items of the body that was scanned last, whose rows are in the table.
   * Returns the number of entries. If there is no space for all, only the first entries are
   * written. `place` has the words of MemberPlace. Throws for wrong arguments, and if the body has
   * changed.
   */
  findMembers(
    body: Buffer,
    place: Uint32Array,
    names: Uint8Array,
    slots: Uint32Array,
    found: Uint32Array,
  ): number;
}

export interface MemberName {
  readonly level: number;
  readonly name: string;
}

/**
 * A set of names, in the form that the addon reads. The path of the first name is 1. The first name
 * must not be empty.
 */
export class MemberNames {
  readonly text: Buffer;
  readonly slots: Uint32Array;
  /** Whether every member of `properties` is listed. */
  readonly listsAll: boolean;
  /** Whether each object that is searched has an entry. */
  readonly listsContainers: boolean;
  /** Whether there are names in `$set` or `$set_once`. */
  readonly hasPersonPaths: boolean;

  /** `innerLevels` are the levels of objects in `properties`, by their names. */
  constructor(
    names: readonly MemberName[],
    {
      innerLevels,
      listsAll,
      listsContainers,
    }: {
      readonly innerLevels: ReadonlyMap<string, number>;
      readonly listsAll: boolean;
      readonly listsContainers: boolean;
    },
  ) {
    this.listsAll = listsAll;
    this.listsContainers = listsContainers;
    this.hasPersonPaths = names.some(
      ({ level }) => level === MemberLevel.Set || level === MemberLevel.SetOnce,
    );
    // The names of plain items have the spelling of JSON.stringify.
    const bytes = names.map(({ name }) => Buffer.from(JSON.stringify(name).slice(1, -1)));
    this.text = Buffer.concat(bytes);
    const slotCount = 2 ** (33 - Math.clz32(Math.max(1, names.length)));
    this.slots = new Uint32Array(slotCount * NameSlot.Words);
    let start = 0;
    for (const [index, { level, name }] of names.entries()) {
      const at = this.#put(level, bytes[index]!, start);
      start += bytes[index]!.length;
      this.slots[at + NameSlot.Path] = index + 1;
      if (level === MemberLevel.Properties)
        this.slots[at + NameSlot.InnerLevel] = innerLevels.get(name) ?? 0;
    }
  }

  #put(level: number, name: Buffer, start: number): number {
    const mask = this.slots.length / NameSlot.Words - 1;
    const hash = nameHash(level, name);
    let slot = hash & mask;
    while (this.slots[slot * NameSlot.Words + NameSlot.NameEnd] !== 0) slot = (slot + 1) & mask;
    const at = slot * NameSlot.Words;
    this.slots[at + NameSlot.Hash] = hash;
    this.slots[at + NameSlot.NameStart] = start;
    this.slots[at + NameSlot.NameEnd] = start + name.length;
    this.slots[at + NameSlot.Level] = level;
    return at;
  }
}

/** A hash over some bytes of the name, like member_hash in addon/find_members.cc. */
function nameHash(level: number, name: Buffer): number {
  const { length } = name;
  let hash = Math.imul(level, 0x9e37_79b1) ^ length;
  if (length < 4) {
    for (const byte of name) hash = Math.imul(hash ^ byte, 0x85eb_ca6b);
  } else {
    hash = Math.imul(hash ^ name.readInt32LE(0), 0x85eb_ca6b);
    hash = Math.imul(hash ^ name.readInt32LE((length >> 1) - 2), 0xc2b2_ae35);
    hash = Math.imul(hash ^ name.readInt32LE(length - 4), 0x27d4_eb2f);
  }
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Hashes of samples. They differ if the addon has another hash function: it finds no member then. */
export const NameHash = {
  Short: nameHash(MemberLevel.Set, Buffer.from("id")),
  Long: nameHash(MemberLevel.SetOnce, Buffer.from("$current_url")),
} as const;
