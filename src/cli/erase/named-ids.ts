// The second ids that an event names by itself: the visitor of an `$identify`, the other person of
// an alias or a merge. Reads a stored line as it stands, so that digits keep and no member is
// hidden behind another one of its name.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";
import { distinctIdText } from "../../events/distinct-id.ts";
import { JsonMembers } from "../../scan/json-members.ts";
import { TokenType } from "../../scan/table.ts";

/** Properties that name a second id, by the event's name. */
const namingProperties: ReadonlyMap<string, string> = new Map([
  ["$identify", "$anon_distinct_id"],
  ["$create_alias", "alias"],
  ["$merge_dangerously", "alias"],
]);
/** Without one of these in its text, a line names no second id. An escape may hide a name. */
const marks = [...[...namingProperties.keys()].map((name) => JSON.stringify(name)), "\\u00"];

export function mayNameIds(text: Buffer): boolean {
  return marks.some((mark) => text.includes(mark));
}

/** `line`: one object. As they are stored. */
export function namedIds(line: Buffer): string[] {
  const top = membersOf(
    line,
    line.indexOf(Ascii.OpenBrace),
    line.lastIndexOf(Ascii.CloseBrace) + 1,
  );
  const event = top.find(({ name }) => name === "event");
  const property =
    event === undefined ? undefined : namingProperties.get(textOf(line, event.start, event.end));
  if (property === undefined) return [];
  return top
    .filter(({ name, type }) => name === "properties" && type === TokenType.Object)
    .flatMap(({ start, end }) => membersOf(line, start, end))
    .filter(({ name, type }) => name === property && !nothing.includes(type))
    .map(({ start, end, type }) => distinctIdText(line, start, end, type).text);
}

const nothing: readonly TokenType[] = [TokenType.Null, TokenType.EmptyString];

interface Member {
  readonly name: string;
  readonly type: TokenType;
  /** The value, with quotes or brackets. */
  readonly start: number;
  readonly end: number;
}

function membersOf(line: Buffer, start: number, end: number): Member[] {
  const members = new JsonMembers(line);
  members.begin(line, start, end);
  const all: Member[] = [];
  while (members.next()) {
    const name = textOf(line, members.nameStart - 1, members.nameEnd + 1);
    const { valueType: type, valueStart, valueEnd } = members;
    all.push({ name, type, start: valueStart, end: valueEnd });
  }
  return all;
}

/** "" for what is no text. */
function textOf(line: Buffer, start: number, end: number): string {
  const value: unknown = JSON.parse(line.toString("utf8", start, end));
  return typeof value === "string" ? value : "";
}
