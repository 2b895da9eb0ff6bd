// Finds members by their names, like the addon, but from a tree of the whole properties.

import {
  Found,
  FoundPath,
  type MemberFinder,
  MemberLevel,
  NameSlot,
} from "../../../src/records/found-members.ts";
import { FieldShift, Header, Row, TokenType } from "../../../src/records/table.ts";
import { type JsonNode, parseTree } from "./parse.ts";

interface NameWords {
  readonly path: number;
  readonly innerLevel: number;
}

function namesIn(text: Uint8Array, slots: Uint32Array): Map<string, NameWords> {
  const names = new Map<string, NameWords>();
  for (let at = 0; at < slots.length; at += NameSlot.Words) {
    const end = slots[at + NameSlot.NameEnd]!;
    if (end === 0) continue;
    const name = Buffer.from(text.subarray(slots[at + NameSlot.NameStart]!, end)).toString();
    names.set(`${slots[at + NameSlot.Level]} ${name}`, {
      path: slots[at + NameSlot.Path]!,
      innerLevel: slots[at + NameSlot.InnerLevel]!,
    });
  }
  return names;
}

export function findMembersInTree(
  table: Uint32Array,
  ...[body, place, text, slots, found]: Parameters<MemberFinder["findMembers"]>
): number {
  const [rowCount, listsAll, hasPersonPaths, listsContainers, ...others] = place;
  const rows = others.slice(0, rowCount);
  const names = namesIn(text, slots);
  const entries: number[][] = [];
  const walk = (row: number, object: JsonNode, shift: number, level: number): void => {
    const container = object.start + shift;
    for (const [ordinal, { key, node }] of object.children.entries()) {
      const { path = 0, innerLevel = 0 } = names.get(`${level} ${key}`) ?? {};
      const [valueStart, valueEnd] = [node.start + shift, node.end + shift];
      // Only white space and a colon separate the name from the value.
      const nameEnd = body.lastIndexOf('"', valueStart - 1);
      const start = nameEnd - Buffer.byteLength(key) - 1;
      if (path !== 0 || (listsAll === 1 && level === MemberLevel.Properties))
        entries.push([row, path, container, ordinal, start, valueStart, valueEnd, node.type]);
      if (level === MemberLevel.Properties && innerLevel !== 0 && node.type === TokenType.Object)
        walk(row, node, shift, innerLevel);
    }
    const members = object.children.length;
    const end = object.end + shift;
    if (listsContainers !== 1) return;
    entries.push([row, FoundPath.Container, container, members, container, container, end, level]);
  };
  const walkField = (row: number, typeShift: number, span: number, level: number): void => {
    const at = Header.Words + row * Row.Words;
    if (((table[at + Row.FieldTypes]! >>> typeShift) & 0xf) !== TokenType.Object) return;
    const [start, end] = [table[at + span]!, table[at + span + 1]!];
    const tree = parseTree(body.subarray(start, end));
    if (typeof tree === "number") throw new Error("A field of the table is not JSON");
    walk(row, tree.root, start, level);
  };
  for (const row of rows) {
    walkField(row, FieldShift.Properties, Row.PropertiesStart, MemberLevel.Properties);
    if (hasPersonPaths !== 1) continue;
    walkField(row, FieldShift.Set, Row.SetStart, MemberLevel.Set);
    walkField(row, FieldShift.SetOnce, Row.SetOnceStart, MemberLevel.SetOnce);
  }
  found.set(entries.flat().slice(0, Math.floor(found.length / Found.Words) * Found.Words));
  return entries.length;
}
