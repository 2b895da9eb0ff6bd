// Changes members of a JSON text, and leaves every other byte unchanged: parsing and writing the
// text again would round long numbers and merge repeated names.

import { Buffer } from "node:buffer";
import { JsonMembers } from "../../records/json-members.ts";
import { TokenType } from "../../records/table.ts";

/** A path of names, such as `["properties", "total"]`. */
export type MemberPath = readonly string[];

/**
 * Returns the text with the member set to a JSON value. Objects on the path that are missing, or are
 * not objects, are created. The text must be a JSON object.
 */
export function withMember(text: string, path: MemberPath, value: string): string {
  const [name = "", ...rest] = path;
  const inner = rest.length === 0 ? value : withMember(objectAt(text, name), rest, value);
  const others = membersOf(text).filter((member) => member.name !== name);
  return `{${[...others.map((member) => member.text), `${JSON.stringify(name)}:${inner}`].join(",")}}`;
}

/** Returns the text without the member. Returns it unchanged if it has no such member. */
export function withoutMember(text: string, path: MemberPath): string {
  const [name = "", ...rest] = path;
  const members = membersOf(text);
  if (!members.some((member) => member.name === name)) return text;
  const kept = members.flatMap((member) => {
    if (member.name !== name) return [member.text];
    if (rest.length === 0) return [];
    if (!member.isObject) return [member.text];
    return [`${JSON.stringify(name)}:${withoutMember(member.value, rest)}`];
  });
  return `{${kept.join(",")}}`;
}

interface Member {
  readonly name: string;
  /** The name, the colon and the value. */
  readonly text: string;
  readonly value: string;
  readonly isObject: boolean;
}

/** Returns the last object with the name; an empty object if the last value is not an object. */
function objectAt(text: string, name: string): string {
  const found = membersOf(text).findLast((member) => member.name === name);
  return found?.isObject === true ? found.value : "{}";
}

function membersOf(text: string): Member[] {
  const body = Buffer.from(text);
  const members = new JsonMembers(body);
  members.begin(body, 0, body.length);
  const all: Member[] = [];
  while (members.next()) {
    const { nameStart, nameEnd, valueStart, valueEnd, valueType } = members;
    all.push({
      name: JSON.parse(body.toString("utf8", nameStart - 1, nameEnd + 1)) as string,
      text: body.toString("utf8", nameStart - 1, valueEnd),
      value: body.toString("utf8", valueStart, valueEnd),
      isObject: valueType === TokenType.Object,
    });
  }
  return all;
}
