// Reads from the first event of a body which SDK created it, so that operators can find the sender
// of refused events. The name comes from an untrusted client. It is limited to 32 characters,
// letters, digits and `_.+-`, and only displayed.

import type { Buffer } from "node:buffer";
import { Header, Row } from "../../records/table.ts";
import { type Member, membersOf } from "./json-bytes.ts";

const valuePattern = /^"([\w.+-]{1,32})"/;
const valueBytesRead = 34;
const keyPattern = /ph[a-z]_/i;

/** The names of SDKs that use another name in their events. */
const names: ReadonlyMap<string, string> = new Map([
  ["web", "posthog-js"],
  ["js", "posthog-js-lite"],
]);

/**
 * Returns the SDK's name and version, for example `posthog-js 1.449.0`; "" if the event has none.
 * The table must be the body's.
 */
export function libraryOf(body: Buffer, table: Uint32Array): string {
  if (table[Header.RowCount] === 0) return "";
  const row = Header.Words;
  const start = table[row + Row.PropertiesStart]!;
  const end = table[row + Row.PropertiesEnd]!;
  const ofProperties = named(body, membersOf({ body, start, end }), ["$lib", "$lib_version"]);
  if (ofProperties !== "") return ofProperties;
  const item = { body, start: table[row + Row.ItemStart]!, end: table[row + Row.ItemEnd]! };
  const ofItem = membersOf({ ...item, skipFrom: start, skipTo: end });
  return named(body, ofItem, ["library", "library_version"]);
}

function named(
  body: Buffer,
  members: readonly Member[],
  [name, version]: readonly [string, string],
): string {
  const library = textOf(body, members, name);
  if (library === "") return "";
  return `${names.get(library) ?? library} ${textOf(body, members, version)}`.trimEnd();
}

function textOf(body: Buffer, members: readonly Member[], wanted: string): string {
  const member = members.find(({ name }) => name === wanted);
  if (member === undefined) return "";
  const text = body.toString("latin1", member.valueAt, member.valueAt + valueBytesRead);
  const found = valuePattern.exec(text)?.[1] ?? "";
  return keyPattern.test(found) ? "" : found;
}
