// Finds and cuts members by their names, like the addon, but from a tree of the whole properties.

import {
  Found,
  FoundPath,
  levelIn,
  type MemberFinder,
  MemberLevel,
  MemberPlace,
  NameSlot,
  Names,
  NamesFlag,
  PlaceRow,
  RowPart,
} from "../../../src/records/found-members.ts";
import { FieldShift, Header, Row, TokenType } from "../../../src/records/table.ts";
import { type JsonNode, parseTree } from "./parse.ts";

interface NameWords {
  readonly path: number;
  readonly removedBy: number;
  readonly rowPart: number;
}

const noWords: NameWords = { path: 0, removedBy: 0, rowPart: 0 };

function namesIn(text: Uint8Array, words: Uint32Array): Map<string, NameWords> {
  const names = new Map<string, NameWords>();
  const slots = words.subarray(Names.Words, Names.Words + words[Names.Slots]! * NameSlot.Words);
  for (let at = 0; at < slots.length; at += NameSlot.Words) {
    const end = slots[at + NameSlot.NameEnd]!;
    if (end === 0) continue;
    const name = Buffer.from(text.subarray(slots[at + NameSlot.NameStart]!, end)).toString();
    names.set(`${slots[at + NameSlot.Level]} ${name}`, {
      path: slots[at + NameSlot.Path]!,
      removedBy: slots[at + NameSlot.RemovedBy]!,
      rowPart: slots[at + NameSlot.RowPart]!,
    });
  }
  return names;
}

/** Finds and cuts members of the rows. The changes are written only if there is space for all. */
export function findMembersInTree(
  table: Uint32Array,
  ...[body, place, text, slots, found, changes]: Parameters<MemberFinder["findMembers"]>
): number {
  const flags = slots[Names.Flags]!;
  const names = namesIn(text, slots);
  const entries: number[][] = [];
  const changed: number[] = [];
  const rowCount = place[MemberPlace.RowCount]!;
  for (let index = 0; index < rowCount; index++) {
    const at = MemberPlace.FirstRow + index * MemberPlace.RowWords;
    const [row, rules] = [place[at + PlaceRow.Row]!, place[at + PlaceRow.Removals]!];
    const members = membersOf(table, body, row, { names, flags });
    if (rules !== 0) changed.push(...changeOf(table, body, row, { members, rules }));
    else
      for (const { isContainer, level, entry } of members) {
        const isListed = isContainer
          ? (flags & NamesFlag.ListsContainers) !== 0
          : entry[Found.Path] !== 0 ||
            ((flags & NamesFlag.ListsAll) !== 0 && level === MemberLevel.Properties);
        if (isListed) entries.push(entry);
      }
  }
  found.set(entries.flat().slice(0, Math.floor(found.length / Found.Words) * Found.Words));
  const end = place[MemberPlace.ChangesEnd]! + changed.length;
  if (end <= changes.length) changes.set(changed, end - changed.length);
  place[MemberPlace.ChangesEnd] = end;
  return entries.length;
}

interface TreeMember {
  readonly isContainer: boolean;
  readonly level: number;
  readonly entry: number[];
  readonly words: NameWords;
}

/** Returns all members and objects of a row that could be listed, in the order of their entries. */
function membersOf(
  table: Uint32Array,
  body: Buffer,
  row: number,
  { names, flags }: { readonly names: Map<string, NameWords>; readonly flags: number },
): TreeMember[] {
  const all: TreeMember[] = [];
  const hasPersonPaths = (flags & NamesFlag.HasPersonPaths) !== 0;
  const walk = (object: JsonNode, shift: number, level: number): void => {
    const container = object.start + shift;
    for (const [ordinal, { key, node }] of object.children.entries()) {
      const words = names.get(`${level} ${key}`) ?? noWords;
      const [valueStart, valueEnd] = [node.start + shift, node.end + shift];
      // Only white space and a colon separate the name from the value.
      const nameEnd = body.lastIndexOf('"', valueStart - 1);
      const start = nameEnd - Buffer.byteLength(key) - 1;
      const place = [row, words.path, container, ordinal, start];
      all.push({
        isContainer: false,
        level,
        entry: [...place, valueStart, valueEnd, node.type],
        words,
      });
      const inner = level === MemberLevel.Properties && hasPersonPaths ? levelIn(words.path) : 0;
      if (inner !== 0 && node.type === TokenType.Object) walk(node, shift, inner);
    }
    const members = object.children.length;
    const end = object.end + shift;
    const entry = [row, FoundPath.Container, container, members, container, container, end, level];
    all.push({ isContainer: true, level, entry, words: noWords });
  };
  const walkField = (typeShift: number, span: number, level: number): void => {
    const at = Header.Words + row * Row.Words;
    if (((table[at + Row.FieldTypes]! >>> typeShift) & 0xf) !== TokenType.Object) return;
    const [start, end] = [table[at + span]!, table[at + span + 1]!];
    const tree = parseTree(body.subarray(start, end));
    if (typeof tree === "number") throw new Error("A field of the table is not JSON");
    walk(tree.root, start, level);
  };
  walkField(FieldShift.Properties, Row.PropertiesStart, MemberLevel.Properties);
  if (!hasPersonPaths) return all;
  walkField(FieldShift.Set, Row.SetStart, MemberLevel.Set);
  walkField(FieldShift.SetOnce, Row.SetOnceStart, MemberLevel.SetOnce);
  return all;
}

/** Returns the words of the change that removes members of a row; none if it has no such member. */
function changeOf(
  table: Uint32Array,
  body: Buffer,
  row: number,
  { members, rules }: { readonly members: readonly TreeMember[]; readonly rules: number },
): number[] {
  const at = Header.Words + row * Row.Words;
  const edits: number[][] = [];
  const cutIn = new Map<number, number>();
  let types = table[at + Row.PropertyTypes]!;
  let needsScan = 0;
  let applied = 0;
  for (const { entry, words, isContainer } of members) {
    const removing = words.removedBy & rules;
    if (isContainer || removing === 0) continue;
    applied |= removing & -removing;
    const container = entry[Found.Container]!;
    const [start, end] = [entry[Found.Start]!, entry[Found.ValueEnd]!];
    const cut = cutIn.get(container) ?? 0;
    cutIn.set(container, cut + 1);
    const after = /^\s*,/.exec(body.toString("latin1", end))?.[0].length ?? 0;
    if (cut === entry[Found.Ordinal]) edits.push([start, end + after, 0, 0]);
    else edits.push([body.lastIndexOf(",", start), end, 0, 0]);
    if (words.rowPart === RowPart.Span) needsScan = 1;
    else if (words.rowPart !== RowPart.None) types &= ~(0xf << words.rowPart);
  }
  if (applied === 0) return [];
  edits.sort(([one], [other]) => one! - other!);
  const fieldTypes = table[at + Row.FieldTypes]!;
  return [row, edits.length, fieldTypes, types >>> 0, needsScan, applied >>> 0, ...edits.flat()];
}
