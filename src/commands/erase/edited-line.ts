// Rewrites lines that name the erased person but stay: the event of another person that names an
// erased id, and the group properties that the erased person set.

import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { distinctIdText } from "../../records/distinct-id.ts";
import { JsonMembers } from "../../records/json-members.ts";
import { TokenType } from "../../records/table.ts";

/** Properties that name a second id, by event. */
const namingProperties: ReadonlyMap<string, string> = new Map([
  ["$identify", "$anon_distinct_id"],
  ["$create_alias", "alias"],
  ["$merge_dangerously", "alias"],
]);
/** A line without these texts names no second id. An escape sequence may hide a name. */
const marks = [...[...namingProperties.keys()].map((name) => JSON.stringify(name)), "\\u00"];

/** The distinct id of a group event of the erased person. */
const erasedId = "$erased";
const groupProperties: ReadonlySet<string> = new Set([
  "$group_type",
  "$group_key",
  "$group_set",
  "$group_unset",
]);
/** Members that contain nothing about the person. */
const groupMembers: ReadonlySet<string> = new Set([
  ...["uuid", "project_id", "event", "kind", "historical"],
  ...["timestamp", "timestamp_sent", "sent_at", "received_at"],
]);

export function mayNameIds(text: Buffer): boolean {
  return marks.some((mark) => text.includes(mark));
}

/** Returns the second ids of a line. `line` must be one object. */
export function namedIds(line: Buffer): NamedId[] {
  const top = membersOf(line, ...objectIn(line));
  const event = top.find(({ name }) => name === "event");
  const property =
    event === undefined ? undefined : namingProperties.get(textOf(line, event.start, event.end));
  if (property === undefined) return [];
  return top
    .filter(({ name, type }) => name === "properties" && type === TokenType.Object)
    .flatMap(({ start, end }) => membersOf(line, start, end))
    .filter(({ name, type }) => name === property && !nothing.includes(type))
    .map(({ start, end, type }) => ({
      id: distinctIdText(line, start, end, type).text,
      start,
      end,
    }));
}

/**
 * Replaces the erased ids by the person's own id, which links nothing. So an `$identify` still
 * marks its person as identified.
 */
export function withoutNamedIds(line: Buffer, ids: ReadonlySet<string>, ownId: string): Buffer {
  const own = Buffer.from(JSON.stringify(ownId));
  const parts: Buffer[] = [];
  let at = 0;
  for (const { id, start, end } of namedIds(line)) {
    if (!ids.has(id)) continue;
    parts.push(line.subarray(at, start), own);
    at = end;
  }
  parts.push(line.subarray(at));
  return Buffer.concat(parts);
}

/** Reduces an event of the erased person to the group properties that it sets. */
export function groupAlone(line: Buffer): Buffer {
  const top = membersOf(line, ...objectIn(line));
  const properties = top
    .filter(({ name, type }) => name === "properties" && type === TokenType.Object)
    .flatMap(({ start, end }) => membersOf(line, start, end))
    .filter(({ name }) => groupProperties.has(name));
  const texts = (members: readonly Member[]) => members.map(({ text }) => text);
  const inside = [...texts(properties), '"$process_person_profile":false'].join(",");
  const members = [
    ...texts(top.filter(({ name }) => groupMembers.has(name))),
    `"distinct_id":${JSON.stringify(erasedId)}`,
    '"person_profile":false',
    `"properties":{${inside}}`,
  ];
  return Buffer.from(`{${members.join(",")}}\n`);
}

interface NamedId {
  readonly id: string;
  readonly start: number;
  readonly end: number;
}

const nothing: readonly TokenType[] = [TokenType.Null, TokenType.EmptyString];

interface Member {
  readonly name: string;
  readonly type: TokenType;
  /** The position of the value, including quotes or brackets. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function objectIn(line: Buffer): [start: number, end: number] {
  return [line.indexOf(Ascii.OpenBrace), line.lastIndexOf(Ascii.CloseBrace) + 1];
}

function membersOf(line: Buffer, start: number, end: number): Member[] {
  const members = new JsonMembers(line);
  members.begin(line, start, end);
  const all: Member[] = [];
  while (members.next()) {
    const { nameStart, nameEnd, valueType: type, valueStart, valueEnd } = members;
    const name = textOf(line, nameStart - 1, nameEnd + 1);
    const text = line.toString("utf8", nameStart - 1, valueEnd);
    all.push({ name, type, start: valueStart, end: valueEnd, text });
  }
  return all;
}

function textOf(line: Buffer, start: number, end: number): string {
  const value: unknown = JSON.parse(line.toString("utf8", start, end));
  return typeof value === "string" ? value : "";
}
