// Properties whose columns no longer fit together, because somebody changed one of them in the
// database. What they show is taken as it is there; what each was written by is no longer known.

import type { PropertyColumns, PropertyState, Stamp } from "../types.ts";

/** Older than any event's: whatever is written next counts. */
const unknownStamp: Stamp = { timeMs: 0, rank: "" };

/**
 * The values of `json`, each as if the newest of the events behind the state had set it; none where
 * `json` is no object. What the state alone has is dropped: it may be what was to be removed.
 */
export function fromEdited({ json, state }: PropertyColumns): Map<string, PropertyState> {
  const stamp = newestOf(state);
  const properties = new Map<string, PropertyState>();
  if (!isObject(json)) return properties;
  for (const [token, value] of membersOf(json)) {
    const write = { stamp, json: value };
    properties.set(JSON.parse(token) as string, { write, once: undefined });
  }
  return properties;
}

function newestOf(state: string): Stamp {
  let newest = unknownStamp;
  for (const stamp of stampsOf(state)) {
    if (stamp.timeMs > newest.timeMs) newest = stamp;
    else if (stamp.timeMs === newest.timeMs && stamp.rank > newest.rank) newest = stamp;
  }
  return newest;
}

/** None where the state is no longer one. */
function stampsOf(state: string): Stamp[] {
  const parsed = parsedOf(state);
  const flat: unknown = Array.isArray(parsed) ? parsed[0] : undefined;
  if (!Array.isArray(flat)) return [];
  const stamps: Stamp[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const [timeMs, rank] = [flat[at] as unknown, flat[at + 1] as unknown];
    if (typeof timeMs === "number" && typeof rank === "string") stamps.push({ timeMs, rank });
  }
  return stamps;
}

function isObject(json: string): boolean {
  const value = parsedOf(json);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Names and values of an object that is valid, as they are written: digits are kept. */
function* membersOf(json: string): Generator<readonly [token: string, value: string]> {
  const inside = json.trim().slice(1, -1);
  let [depth, start, colon] = [0, 0, -1];
  // A whole string, or one character of what is around them.
  for (const { 0: part, index } of inside.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:,]/g)) {
    if (part === "{" || part === "[") depth++;
    else if (part === "}" || part === "]") depth--;
    else if (depth > 0) continue;
    else if (part === ":") colon = index;
    else if (part === ",") {
      yield [inside.slice(start, colon).trim(), inside.slice(colon + 1, index).trim()];
      [start, colon] = [index + 1, -1];
    }
  }
  if (colon >= 0) yield [inside.slice(start, colon).trim(), inside.slice(colon + 1).trim()];
}
