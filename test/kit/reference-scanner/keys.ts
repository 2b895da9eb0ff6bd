// Finds the key of a body for the reference scanner. It must not share code with the addon.

import { keyTokenBytesMax, TokenType } from "../../../src/records/table.ts";
import type { JsonNode } from "./parse.ts";

const nothing: ReadonlySet<TokenType> = new Set([TokenType.Null, TokenType.EmptyString]);

/** Returns the members, with escapes resolved. The last member of a repeated name is used. */
export function membersByName(node: JsonNode): Map<string, JsonNode> {
  return new Map(
    node.children.map(({ key, node: value }) => [JSON.parse(`"${key}"`) as string, value]),
  );
}

function firstThatHolds(places: readonly (JsonNode | undefined)[]): JsonNode | undefined {
  return places.find((place) => place !== undefined && !nothing.has(place.type));
}

export function keyOfEnvelope(members: ReadonlyMap<string, JsonNode>): JsonNode | undefined {
  return firstThatHolds([members.get("api_key"), members.get("token")]);
}

export function keyOfEvent(event: JsonNode): JsonNode | undefined {
  const members = membersByName(event);
  const properties = members.get("properties");
  const inner =
    properties?.type === TokenType.Object ? membersByName(properties).get("token") : undefined;
  return firstThatHolds([
    ...["api_key", "token", "$token"].map((name) => members.get(name)),
    inner,
  ]);
}

function keyText(body: Buffer, { type, start, end }: JsonNode): string | undefined {
  const isString = type === TokenType.PlainString || type === TokenType.EscapedString;
  if (!isString || end - start > keyTokenBytesMax) return undefined;
  const text = JSON.parse(body.toString("utf8", start, end)) as string;
  return [...text].every((character) => character <= "\x7f") ? text.trim() : undefined;
}

function isSameKey(body: Buffer, one: JsonNode, other: JsonNode): boolean {
  if (body.subarray(one.start, one.end).equals(body.subarray(other.start, other.end))) return true;
  const text = keyText(body, one);
  return text !== undefined && text === keyText(body, other);
}

/**
 * `key` is the key of the first item that has a key. `otherItem` is the index of the first item
 * with a different key, or 0.
 */
export function keyOfArray(
  body: Buffer,
  array: JsonNode,
): { key: JsonNode | undefined; otherItem: number } {
  const keys = array.children.map(({ node }) =>
    node.type === TokenType.Object ? keyOfEvent(node) : undefined,
  );
  const key = keys.find((held) => held !== undefined);
  const other = keys.findIndex((held) => held !== undefined && !isSameKey(body, held, key!));
  return { key, otherItem: Math.max(0, other) };
}
