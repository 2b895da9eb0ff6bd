// Finds and edits members by their names, like the addon, but from a tree of the whole properties.

import {
  Found,
  FoundPath,
  levelIn,
  MemberEdit,
  type MemberFinder,
  MemberLevel,
  NameSlot,
  NamesFlag,
  Names as NamesWord,
  RowPart,
  SetMember,
} from "../../../src/records/found-members.ts";
import { EditText } from "../../../src/records/item-changes.ts";
import { needsMembers, RowTask, RowTasks, TaskKind } from "../../../src/records/row-tasks.ts";
import { FieldShift, Header, Row, TokenType } from "../../../src/records/table.ts";
import { type JsonNode, parseTree } from "./parse.ts";

interface NameWords {
  readonly path: number;
  readonly editedBy: number;
  readonly edit: number;
  readonly rowPart: number;
}

const noWords: NameWords = { path: 0, editedBy: 0, edit: 0, rowPart: 0 };

interface SetWords {
  readonly rules: number;
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
  readonly value: string;
  readonly type: number;
  readonly rowPart: number;
}

interface Names {
  readonly flags: number;
  readonly named: ReadonlyMap<string, NameWords>;
  readonly sets: readonly SetWords[];
}

function namesIn(texts: Uint8Array, words: Uint32Array): Names {
  const named = new Map<string, NameWords>();
  const slotsEnd = NamesWord.Words + words[NamesWord.Slots]! * NameSlot.Words;
  for (let at = NamesWord.Words; at < slotsEnd; at += NameSlot.Words) {
    const end = words[at + NameSlot.NameEnd]!;
    if (end === 0) continue;
    const name = Buffer.from(texts.subarray(words[at + NameSlot.NameStart]!, end)).toString();
    named.set(`${words[at + NameSlot.Level]} ${name}`, {
      path: words[at + NameSlot.Path]!,
      editedBy: words[at + NameSlot.EditedBy]!,
      edit: words[at + NameSlot.Edit]!,
      rowPart: words[at + NameSlot.RowPart]!,
    });
  }
  const sets: SetWords[] = [];
  const setsEnd = slotsEnd + words[NamesWord.Sets]! * SetMember.Words;
  for (let at = slotsEnd; at < setsEnd; at += SetMember.Words) {
    const word = (index: number): number => words[at + index]!;
    const value = texts.subarray(word(SetMember.ValueStart), word(SetMember.TextEnd));
    sets.push({
      rules: word(SetMember.Rules),
      start: word(SetMember.TextStart),
      valueStart: word(SetMember.ValueStart),
      end: word(SetMember.TextEnd),
      value: Buffer.from(value).toString(),
      type: word(SetMember.Type),
      rowPart: word(SetMember.RowPart),
    });
  }
  return { flags: words[NamesWord.Flags]!, named, sets };
}

/** Finds and edits members of the rows. The changes are written only if there is space for all. */
export function findMembersInTree(
  table: Uint32Array,
  ...[body, tasks, texts, slots, found, changes]: Parameters<MemberFinder["findMembers"]>
): number {
  const names = namesIn(texts, slots);
  const { flags } = names;
  const entries: number[][] = [];
  const changed: number[] = [];
  for (let index = 0; index < tasks[RowTasks.Count]!; index++) {
    const task = RowTasks.Rows + index * RowTask.Words;
    const kind = tasks[task + RowTask.Kind]!;
    if (!needsMembers(kind)) continue;
    const row = tasks[RowTasks.First]! + index;
    const members = membersOf(table, body, row, names);
    if (kind === TaskKind.Edit) {
      const rules = tasks[task + RowTask.Argument]!;
      const change = changeOf(table, body, row, { members, rules, names });
      if (change !== undefined) {
        const { applied, words, bytes } = change;
        changed.push(...words);
        tasks[task + RowTask.Result] = applied === 0 ? 0 : ++tasks[RowTasks.Changes]!;
        if (applied !== 0) tasks[RowTasks.ChangedBytes]! += bytesOf(table, row) + bytes;
        for (let rule = 0; rule < 32; rule++)
          tasks[RowTasks.RuleChanges + rule]! += (applied >>> rule) & 1;
        continue;
      }
      tasks[task + RowTask.Kind] = TaskKind.List;
      tasks[task + RowTask.Argument] = 0;
    }
    const before = entries.length;
    for (const { isContainer, level, entry } of members) {
      const isListed = isContainer
        ? (flags & NamesFlag.ListsContainers) !== 0
        : entry[Found.Path] !== 0 ||
          ((flags & NamesFlag.ListsAll) !== 0 && level === MemberLevel.Properties);
      if (isListed) entries.push(entry);
    }
    const hasAny = entries.length > before;
    tasks[task + RowTask.Result] = hasAny ? 1 : 0;
  }
  found.set(entries.flat().slice(0, Math.floor(found.length / Found.Words) * Found.Words));
  const end = tasks[RowTasks.ChangesEnd]! + changed.length;
  if (end <= changes.length) changes.set(changed, end - changed.length);
  tasks[RowTasks.ChangesEnd] = end;
  return entries.length;
}

function bytesOf(table: Uint32Array, row: number): number {
  const at = Header.Words + row * Row.Words;
  return table[at + Row.ItemEnd]! - table[at + Row.ItemStart]!;
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
  { named, flags }: Names,
): TreeMember[] {
  const all: TreeMember[] = [];
  const hasPersonPaths = (flags & NamesFlag.HasPersonPaths) !== 0;
  const walk = (object: JsonNode, shift: number, level: number): void => {
    const container = object.start + shift;
    for (const [ordinal, { key, node }] of object.children.entries()) {
      const words = named.get(`${level} ${key}`) ?? noWords;
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

interface RowChange {
  /** The rules that have edited the row. */
  readonly applied: number;
  readonly words: readonly number[];
  /** Maximum bytes of the inserted texts. */
  readonly bytes: number;
}

/** Returns the change to a row; undefined if not all of its rules can be applied. */
function changeOf(
  table: Uint32Array,
  body: Buffer,
  row: number,
  {
    members,
    rules,
    names,
  }: { readonly members: readonly TreeMember[]; readonly rules: number; readonly names: Names },
): RowChange | undefined {
  const at = Header.Words + row * Row.Words;
  const edits: number[][] = [];
  const cutIn = new Map<number, number>();
  let types = table[at + Row.PropertyTypes]!;
  let needsScan = 0;
  let applied = 0;
  let bytes = 0;
  const note = (rowPart: number, type: number): void => {
    if (rowPart === RowPart.Span) needsScan = 1;
    else if (rowPart !== RowPart.None) types = (types & ~(0xf << rowPart)) | (type << rowPart);
  };
  const sets = names.sets.filter((set) => (set.rules & rules) !== 0);
  const object = members.find(
    ({ isContainer, level }) => isContainer && level === MemberLevel.Properties,
  );
  if (sets.length > 0 && object === undefined) return undefined;
  const absent = new Set(sets);
  for (const { entry, words, isContainer } of members) {
    const editing = words.editedBy & rules;
    if (isContainer || editing === 0) continue;
    const container = entry[Found.Container]!;
    const [start, end] = [entry[Found.Start]!, entry[Found.ValueEnd]!];
    const [value, type] = [entry[Found.ValueStart]!, entry[Found.Type]!];
    if (words.edit === MemberEdit.Remove) {
      const cut = cutIn.get(container) ?? 0;
      cutIn.set(container, cut + 1);
      const after = /^\s*,/.exec(body.toString("latin1", end))?.[0].length ?? 0;
      if (cut === entry[Found.Ordinal]) edits.push([start, end + after, 0, 0]);
      else edits.push([body.lastIndexOf(",", start), end, 0, 0]);
      note(words.rowPart, TokenType.Absent);
    } else if (words.edit === MemberEdit.Hash) {
      if (type === TokenType.EscapedString) return undefined;
      if (type < TokenType.Number) continue;
      edits.push([value, end, 0, EditText.Hashed]);
      bytes += EditText.HashBytes;
      note(words.rowPart, TokenType.PlainString);
    } else {
      const set = names.sets[words.edit - MemberEdit.Set]!;
      absent.delete(set);
      if (body.toString("utf8", value, end) === set.value) continue;
      edits.push([value, end, set.valueStart, set.end]);
      bytes += set.end - set.valueStart;
      note(set.rowPart, set.type);
    }
    applied |= editing & -editing;
  }
  if (object !== undefined) {
    const container = object.entry[Found.Container]!;
    const hasOthers = object.entry[Found.Ordinal]! > (cutIn.get(container) ?? 0);
    const last = [...absent].at(-1);
    for (const set of sets) {
      const end = set.end + (hasOthers || set !== last ? 1 : 0);
      const text = absent.has(set) ? [set.start, end] : [0, 0];
      edits.push([container + 1, container + 1, ...text]);
      if (!absent.has(set)) continue;
      bytes += end - set.start;
      applied |= set.rules & rules & -(set.rules & rules);
      note(set.rowPart, set.type);
    }
  }
  if (applied === 0) return { applied, words: [], bytes: 0 };
  // An insertion precedes an edit at its offset.
  edits.sort((one, other) => one[0]! - other[0]! || one[1]! - other[1]!);
  const fieldTypes = table[at + Row.FieldTypes]!;
  const words = [row, edits.length, fieldTypes, types >>> 0, needsScan, ...edits.flat()];
  return { applied, words, bytes };
}
