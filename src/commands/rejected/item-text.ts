// Changes members of a JSON text, and leaves every other byte unchanged: parsing and writing the
// text again would round long numbers and merge repeated names.

import { Buffer } from "node:buffer";
import { listMembers } from "../../records/json-members.ts";
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
    if (member.type !== TokenType.Object) return [member.text];
    return [`${JSON.stringify(name)}:${withoutMember(member.value, rest)}`];
  });
  return `{${kept.join(",")}}`;
}

/** Returns the last object with the name; an empty object if the last value is not an object. */
function objectAt(text: string, name: string): string {
  const found = membersOf(text).findLast((member) => member.name === name);
  return found?.type === TokenType.Object ? found.value : "{}";
}

function membersOf(text: string) {
  const body = Buffer.from(text);
  return listMembers(body, 0, body.length).map((member) => ({
    ...member,
    value: body.toString("utf8", member.start, member.end),
  }));
}
