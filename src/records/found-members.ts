// The layout of the members that the addon finds by their names. The C++ side
// (addon/find_members.h) has the same numbers. Loading the addon compares both.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { PropertyShift } from "./table.ts";

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
  /** The sum of the parts in FoundType. In an entry of an object: its level. */
  Type: 7,
  Words: 8,
} as const;

export const FoundPath = {
  /** A member of `properties` that has no path. Listed only on request. */
  Unnamed: 0,
  /** The object itself. Follows the entries of its members. Listed only on request. */
  Container: 0xffff_ffff,
  /**
   * The result of the row's schema. This is the first entry of each row with a schema, unless all
   * members pass for sure and the row needs no entries.
   */
  Schema: 0xffff_fffe,
} as const;

export const FoundType = {
  /** The TokenType of the value. */
  Token: 0xf,
  /** The value passes the row's schema for sure. In an entry of a schema: all properties do. */
  Sure: 0x10,
} as const;

/**
 * The words before the slots of a hash table of names. The members to set and the
 * checks of schemas follow the slots.
 */
export const Names = {
  /** The sum of NamesFlag. */
  Flags: 0,
  /** The lower half of the filter, which has a bit for each name. */
  FilterLow: 1,
  FilterHigh: 2,
  /** Number of slots, a power of two. */
  Slots: 3,
  /** Number of members to set. */
  Sets: 4,
  Words: 5,
} as const;

export const NamesFlag = {
  /** Every member of `properties` is listed. */
  ListsAll: 1,
  /** `$set` and `$set_once` of the event and of its `properties` are searched. */
  HasPersonPaths: 2,
  /** Each object that is searched has an entry. */
  ListsContainers: 4,
} as const;

/** The words of a slot in a hash table of names. NameEnd is 0 in a free slot. */
export const NameSlot = {
  Hash: 0,
  NameStart: 1,
  NameEnd: 2,
  /** The level of the object that has the member. */
  Level: 3,
  /** The number of the path. */
  Path: 4,
  /** A bit for each rule that edits the member. Rules that edit `$set` itself have none. */
  EditedBy: 5,
  /** One of MemberEdit. */
  Edit: 6,
  /** The shift of the member's type in Row.PropertyTypes, or a value of RowPart. */
  RowPart: 7,
  Words: 8,
} as const;

/** What rules do with a member. */
export const MemberEdit = {
  Remove: 0,
  Hash: 1,
  /** The index of the member to set is added. */
  Set: 2,
} as const;

/** The words of a member of `properties` to set. */
export const SetMember = {
  /** A bit for each rule that sets the member. */
  Rules: 0,
  /** The name, a colon and the value in the texts of the rules. A comma follows. */
  TextStart: 1,
  ValueStart: 2,
  TextEnd: 3,
  /** The TokenType of the value. */
  Type: 4,
  RowPart: 5,
  Words: 6,
} as const;

/** Maximum number of members to set in a hash table of names. */
export const setMembersMax = 32;

/** What the row of the table has of a member, apart from its type. */
export const RowPart = {
  None: 0xffff_ffff,
  /** The offsets of the member. */
  Span: 0xffff_fffe,
} as const;

/**
 * The levels of objects. `$set` and `$set_once` in `properties` have the paths 1 and 2, which are the
 * levels of their members.
 */
export const MemberLevel = {
  Properties: 0,
  /** `$set` of the event or of its `properties`. */
  Set: 1,
  SetOnce: 2,
} as const;

/** Returns the level of the members of a path's value, or 0 if they have no paths. */
export function levelIn(path: number): number {
  return path <= MemberLevel.SetOnce ? path : 0;
}

/** A part of the texts of the rules. */
export interface ConstantText {
  readonly start: number;
  readonly end: number;
}

export interface MemberName {
  readonly level: number;
  readonly name: string;
  /** The name as JSON, and a colon. */
  readonly text: ConstantText;
}

interface MemberNamesOptions {
  /** The texts of the rules. */
  readonly texts: Buffer;
  readonly listsAll: boolean;
  readonly listsContainers: boolean;
  /** What the rules edit, by path. Default: nothing. */
  readonly edits?: ReadonlyMap<number, PathEdit>;
  /** The words of a SchemaCheckWriter. Default: none. */
  readonly checks?: readonly number[];
}

/** What rules do with the members of a path. */
export interface PathEdit {
  /** A bit for each rule. */
  readonly rules: number;
  readonly edit: "remove" | "hash" | SetText;
}

/** The JSON text of a value that rules set. */
export interface SetText extends ConstantText {
  /** The start of the name and a colon before the value. A comma follows the value. */
  readonly nameStart: number;
  /** The TokenType of the value. */
  readonly type: number;
}

const noEdit: PathEdit = { rules: 0, edit: "remove" };

/**
 * A set of names, in the form that the addon reads. The path of the first name is 1. The first names
 * are `$set` and `$set_once` of `properties`.
 */
export class MemberNames {
  readonly slots: Uint32Array;
  /** The level and the RowPart of each path. */
  readonly levels: readonly number[];
  readonly rowParts: readonly number[];

  constructor(
    names: readonly MemberName[],
    { texts, listsAll, listsContainers, edits = new Map(), checks = [] }: MemberNamesOptions,
  ) {
    const hasPersonPaths = names.some(({ level }) => level !== MemberLevel.Properties);
    this.levels = [MemberLevel.Properties, ...names.map(({ level }) => level)];
    this.rowParts = [RowPart.None, ...names.map(rowPartOf)];
    const sets = [...edits.values()].filter(({ edit }) => typeof edit === "object");
    const slotCount = 2 ** (33 - Math.clz32(Math.max(1, names.length)));
    const slotsEnd = Names.Words + slotCount * NameSlot.Words;
    const setsEnd = slotsEnd + sets.length * SetMember.Words;
    this.slots = new Uint32Array(setsEnd + checks.length);
    this.slots.set(checks, setsEnd);
    this.slots[Names.Slots] = slotCount;
    this.slots[Names.Flags] =
      (listsAll ? NamesFlag.ListsAll : 0) |
      (hasPersonPaths ? NamesFlag.HasPersonPaths : 0) |
      (listsContainers ? NamesFlag.ListsContainers : 0);
    for (const [index, { level, text }] of names.entries()) {
      const path = index + 1;
      // Without the quotes. The names of plain items have the same spelling.
      const name = texts.subarray(text.start + 1, text.end - 2);
      const bit = filterBit(name);
      this.slots[bit < 32 ? Names.FilterLow : Names.FilterHigh]! |= 1 << (bit & 31);
      const at = this.#put(level, name, text.start + 1);
      this.slots[at + NameSlot.Path] = path;
      this.slots[at + NameSlot.RowPart] = this.rowParts[path]!;
      const { rules, edit } = edits.get(path) ?? noEdit;
      this.slots[at + NameSlot.EditedBy] = rules;
      if (edit === "hash") this.slots[at + NameSlot.Edit] = MemberEdit.Hash;
      if (typeof edit === "string") continue;
      const set = this.slots[Names.Sets]!++;
      this.slots[at + NameSlot.Edit] = MemberEdit.Set + set;
      this.slots.set(
        [rules, edit.nameStart, edit.start, edit.end, edit.type, this.rowParts[path]!],
        slotsEnd + set * SetMember.Words,
      );
    }
  }

  #put(level: number, name: Buffer, start: number): number {
    const mask = this.slots[Names.Slots]! - 1;
    const hash = nameHash(level, name);
    const wordOf = (slot: number): number => Names.Words + slot * NameSlot.Words;
    let slot = hash & mask;
    while (this.slots[wordOf(slot) + NameSlot.NameEnd] !== 0) slot = (slot + 1) & mask;
    const at = wordOf(slot);
    this.slots[at + NameSlot.Hash] = hash;
    this.slots[at + NameSlot.NameStart] = start;
    this.slots[at + NameSlot.NameEnd] = start + name.length;
    this.slots[at + NameSlot.Level] = level;
    return at;
  }
}

/** Properties of which the row of the table has the type. */
const typedProperties: ReadonlyMap<string, number> = new Map([
  ["$survey_id", PropertyShift.SurveyId],
  ["$group_set", PropertyShift.GroupSet],
  ["$groups", PropertyShift.Groups],
  ["$process_person_profile", PropertyShift.ProcessPersonProfile],
  ["$current_url", PropertyShift.CurrentUrl],
  ["$screen_name", PropertyShift.ScreenName],
  ["$ignore_sent_at", PropertyShift.IgnoreSentAt],
]);
/** Properties of which the table has the offsets. */
const spannedProperties: ReadonlySet<string> = new Set([
  "$set",
  "$set_once",
  "$unset",
  "distinct_id",
  "$distinct_id",
]);

/** Returns the shift of a member's type in Row.PropertyTypes, or a value of RowPart. */
function rowPartOf({ level, name }: MemberName): number {
  if (level !== MemberLevel.Properties) return RowPart.None;
  return spannedProperties.has(name) ? RowPart.Span : (typedProperties.get(name) ?? RowPart.None);
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

/** The number of a name's bit in the filter, like member_bit in addon/find_members.cc. */
function filterBit(name: Buffer): number {
  const { length } = name;
  const [last, middle] = [name[length - 1] ?? Ascii.Quote, name[length >> 1] ?? Ascii.Quote];
  return (8 * length + last + 3 * middle) & 63;
}

/** Hashes of samples. They differ if the addon has another hash function: it finds no member then. */
export const NameHash = {
  Short: nameHash(MemberLevel.Set, Buffer.from("id")),
  Long: nameHash(MemberLevel.SetOnce, Buffer.from("$current_url")),
  Bit: filterBit(Buffer.from("$current_url")),
} as const;
