// Finds members by their names, like the addon, but in a tree of the whole properties. Edits no row,
// so that each row to edit becomes one to list.

import {
  Found,
  FoundPath,
  levelIn,
  MemberLevel,
  NameSlot,
  NamesFlag,
  Names as NamesWord,
} from "../../../src/records/found-members.ts";
import {
  listRow,
  needsMembers,
  RowTask,
  RowTasks,
  TaskKind,
} from "../../../src/records/row-tasks.ts";
import {
  FieldShift,
  Header,
  type MemberFinder,
  Row,
  TokenType,
} from "../../../src/records/table.ts";
import { type JsonNode, parseTree } from "./parse.ts";

interface Names {
  readonly flags: number;
  /** The paths by level and name. */
  readonly paths: ReadonlyMap<string, number>;
}

function namesIn(texts: Uint8Array, words: Uint32Array): Names {
  const paths = new Map<string, number>();
  const slotsEnd = NamesWord.Words + words[NamesWord.Slots]! * NameSlot.Words;
  for (let at = NamesWord.Words; at < slotsEnd; at += NameSlot.Words) {
    const end = words[at + NameSlot.NameEnd]!;
    if (end === 0) continue;
    const name = Buffer.from(texts.subarray(words[at + NameSlot.NameStart]!, end)).toString();
    paths.set(`${words[at + NameSlot.Level]} ${name}`, words[at + NameSlot.Path]!);
  }
  return { flags: words[NamesWord.Flags]!, paths };
}

export function findMembersInTree(
  table: Uint32Array,
  ...[body, tasks, texts, slots, found]: Parameters<MemberFinder["findMembers"]>
): number {
  const names = namesIn(texts, slots);
  const entries: number[][] = [];
  for (let index = 0; index < tasks[RowTasks.Count]!; index++) {
    const at = RowTasks.Rows + index * RowTask.Words + RowTask.Kind;
    const kind = tasks[at]!;
    if (!needsMembers(kind)) continue;
    if (kind === TaskKind.Edit) listRow(tasks, index);
    const listed = entriesOf(table, body, tasks[RowTasks.First]! + index, names);
    const hasMember = listed.some((entry) => entry[Found.Path] !== FoundPath.Container);
    const isStored = kind === TaskKind.ListIfAny && !hasMember;
    if (!isStored) entries.push(...listed);
    tasks[at] = isStored ? TaskKind.Stored : TaskKind.List;
  }
  found.set(entries.flat().slice(0, Math.floor(found.length / Found.Words) * Found.Words));
  return entries.length;
}

/** Returns the entries of a row. */
function entriesOf(
  table: Uint32Array,
  body: Buffer,
  row: number,
  { paths, flags }: Names,
): number[][] {
  const all: number[][] = [];
  const hasPersonPaths = (flags & NamesFlag.HasPersonPaths) !== 0;
  const walk = (object: JsonNode, shift: number, level: number): void => {
    const container = object.start + shift;
    const listsAll = (flags & NamesFlag.ListsAll) !== 0 && level === MemberLevel.Properties;
    for (const [ordinal, { key, node }] of object.children.entries()) {
      const path = paths.get(`${level} ${key}`) ?? FoundPath.Unnamed;
      const [valueStart, valueEnd] = [node.start + shift, node.end + shift];
      // Only white space and a colon separate the name from the value.
      const nameEnd = body.lastIndexOf('"', valueStart - 1);
      const start = nameEnd - Buffer.byteLength(key) - 1;
      if (path !== FoundPath.Unnamed || listsAll)
        all.push([row, path, container, ordinal, start, valueStart, valueEnd, node.type]);
      const inner = level === MemberLevel.Properties && hasPersonPaths ? levelIn(path) : 0;
      if (inner !== 0 && node.type === TokenType.Object) walk(node, shift, inner);
    }
    const members = object.children.length;
    const end = object.end + shift;
    if ((flags & NamesFlag.ListsContainers) !== 0)
      all.push([row, FoundPath.Container, container, members, container, container, end, level]);
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
