// Converts properties to and from two columns. The column `json` contains the current values for
// queries. The column `state` contains everything else. A store must return both texts unchanged,
// so the PostgreSQL column has the type `json` instead of `jsonb`.

import { nameToken } from "../rules/plain-texts.ts";
import { compareStamps } from "../stamp.ts";
import type { Properties, PropertyColumns, PropertyState, Stamp } from "../types.ts";

/** The parsed column `state`. The numbers are indices into `stamps`; -1 stands for no stamp. */
type State = [
  stamps: (number | string)[],
  // Each name in the column `json` has four numbers:
  // 1. the length of the name as JSON, which is negative after an `$unset`
  // 2. the length of the value
  // 3. the index of the newest write
  // 4. the index of the oldest `$set_once`
  shown: number[],
  // The values of `$set_once` for names whose value in `json` comes from a `$set`.
  hidden: string[],
  // Each name that is not in the column `json` has four entries:
  // 1. the name
  // 2. the index of the `$unset`
  // 3. the index of the oldest `$set_once`
  // 4. the value of the `$set_once`, or "" if there is none
  unshown: (number | string)[],
];

export const noColumns: PropertyColumns = { json: "{}", state: "" };

export function shownJson(property: PropertyState): string | undefined {
  const { write, once } = property;
  if (write === undefined) return once?.json;
  if (write.json !== null) return write.json;
  if (once !== undefined && compareStamps(once.stamp, write.stamp) > 0) return once.json;
  return undefined;
}

export function toColumns(properties: Properties): PropertyColumns {
  if (properties.size === 0) return noColumns;
  const stamps = new StampTable();
  const [shown, hidden, unshown]: [number[], string[], (number | string)[]] = [[], [], []];
  let json = "";
  for (const name of [...properties.keys()].sort()) {
    const property = properties.get(name)!;
    const { write, once } = property;
    const value = shownJson(property);
    const writeIndex = write === undefined ? -1 : stamps.indexOf(write.stamp);
    const onceIndex = once === undefined ? -1 : stamps.indexOf(once.stamp);
    if (value === undefined) {
      unshown.push(name, writeIndex, onceIndex, once?.json ?? "");
      continue;
    }
    const token = nameToken(name);
    json += json === "" ? `{${token}:${value}` : `,${token}:${value}`;
    const isUnset = write !== undefined && write.json === null;
    shown.push(isUnset ? -token.length : token.length, value.length, writeIndex, onceIndex);
    if (once !== undefined && write !== undefined && !isUnset) hidden.push(once.json);
  }
  const state: State = [stamps.flat, shown, hidden, unshown];
  return { json: json === "" ? "{}" : `${json}}`, state: JSON.stringify(state) };
}

/** Returns the properties, or undefined if a user has made the columns inconsistent. */
export function fromColumns(columns: PropertyColumns): Map<string, PropertyState> | undefined {
  try {
    return readColumns(columns);
  } catch {
    return undefined;
  }
}

function readColumns(columns: PropertyColumns): Map<string, PropertyState> | undefined {
  const properties = new Map<string, PropertyState>();
  if (columns.state === "") return columns.json === noColumns.json ? properties : undefined;
  const [flat, shown, hidden, unshown] = JSON.parse(columns.state) as State;
  const stamps = stampsOf(flat);
  const stampAt = (index: number): Stamp => {
    const stamp = stamps[index];
    if (typeof stamp?.timeMs !== "number" || typeof stamp.rank !== "string")
      throw new Error("the stamp is missing");
    return stamp;
  };
  const stampOrNone = (index: number) => (index === -1 ? undefined : stampAt(index));
  const { json } = columns;
  let [at, hiddenAt] = [1, 0];
  for (let index = 0; index < shown.length; index += 4) {
    const tokenLength = shown[index]!;
    const nameEnd = at + Math.abs(tokenLength);
    const valueEnd = nameEnd + 1 + shown[index + 1]!;
    if (json[nameEnd] !== ":" || !(json[valueEnd] === "," || json[valueEnd] === "}"))
      return undefined;
    const name = nameOf(json.slice(at, nameEnd));
    const value = json.slice(nameEnd + 1, valueEnd);
    const write = stampOrNone(shown[index + 2]!);
    const once = stampOrNone(shown[index + 3]!);
    if (write === undefined && once === undefined) return undefined;
    const isUnset = tokenLength < 0;
    const onceJson = once !== undefined && write !== undefined && !isUnset;
    properties.set(name, {
      write: write && { stamp: write, json: isUnset ? null : value },
      once: once && { stamp: once, json: onceJson ? hidden[hiddenAt++]! : value },
    });
    at = valueEnd + 1;
  }
  if (shown.length === 0 ? json !== "{}" : at !== json.length) return undefined;
  for (let index = 0; index < unshown.length; index += 4) {
    const once = stampOrNone(unshown[index + 2] as number);
    properties.set(unshown[index] as string, {
      write: { stamp: stampAt(unshown[index + 1] as number), json: null },
      once: once && { stamp: once, json: unshown[index + 3] as string },
    });
  }
  return properties;
}

class StampTable {
  readonly flat: (number | string)[] = [];
  readonly #indices = new Map<string, number>();

  indexOf({ timeMs, rank }: Stamp): number {
    let index = this.#indices.get(rank);
    if (index === undefined) {
      index = this.#indices.size;
      this.#indices.set(rank, index);
      this.flat.push(timeMs, rank);
    }
    return index;
  }
}

function stampsOf(flat: readonly (number | string)[]): Stamp[] {
  const stamps: Stamp[] = [];
  for (let index = 0; index < flat.length; index += 2) {
    stamps.push({ timeMs: flat[index] as number, rank: flat[index + 1] as string });
  }
  return stamps;
}

function nameOf(token: string): string {
  return token.includes("\\") ? (JSON.parse(token) as string) : token.slice(1, -1);
}
