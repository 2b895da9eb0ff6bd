import { isBlankId } from "../event-uuid.ts";
import { isObject, type JsonObject, parseJson } from "../json-text.ts";
import type { TimeZone } from "../times.ts";

interface SentEvent {
  readonly event: unknown;
  readonly distinct_id: unknown;
  /** The time in ISO 8601. If the time in the line cannot be read, this is the original value. */
  readonly timestamp?: unknown;
  readonly properties: JsonObject;
  readonly $set?: JsonObject | undefined;
  readonly $set_once?: JsonObject | undefined;
}

export type Converted =
  | {
      readonly event: SentEvent;
      readonly uuid?: unknown;
      readonly source?: readonly unknown[] | undefined;
      /** The links between ids in the line. They are sent as separate events after the event. */
      readonly links?: readonly Link[];
      readonly also?: SentEvent | undefined;
    }
  | { readonly skipped: string; readonly detail: string };

export interface Link {
  readonly event: SentEvent;
  readonly source: readonly unknown[];
}

export type LossCode = "unreadable_field" | "more_groups" | "group_properties";

/**
 * Maximum number of remembered items of a kind. If it is exceeded, the oldest item is forgotten,
 * and a link may be sent again.
 */
const itemsMax = 100_000;

export class ShownFacts {
  readonly #kinds = new Map<string, Set<string>>();

  /** Remembers an item. Returns true if it is new. */
  add(kind: string, item: string): boolean {
    const items = this.#kinds.get(kind) ?? new Set();
    this.#kinds.set(kind, items);
    if (items.has(item)) return false;
    if (items.size >= itemsMax) {
      const [oldest] = items;
      items.delete(oldest!);
    }
    items.add(item);
    return true;
  }

  has(kind: string, item: string): boolean {
    return this.#kinds.get(kind)?.has(item) === true;
  }
}

export interface FormatOptions {
  readonly groupType: string;
  readonly timeZone?: TimeZone | undefined;
}

export interface Conversion extends FormatOptions {
  readonly lost: (code: LossCode, detail: string) => void;
  readonly shown: ShownFacts;
}

export interface Format {
  readonly name: string;
  readonly nameField?: string;
  readonly hasLocalTimes?: boolean;
  /** The name of the format in messages, such as "PostHog's batch export". */
  readonly title: string;
  recognises(line: JsonObject): boolean;
  /**
   * Returns true if the line must be converted, because its bytes are not an event. If this
   * function is missing, all lines must be converted.
   */
  needsConversion?(line: Buffer): boolean;
  mayHaveOtherId?(line: Buffer): boolean;
  convert(line: JsonObject, conversion: Conversion): Converted;
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Maximum number of times that JSON may be encoded as a string in JSON. */
const encodedMax = 3;

export function decoded(value: unknown): unknown {
  let found = value;
  for (let nth = 0; nth < encodedMax && typeof found === "string"; nth++) {
    const text = found.trim();
    if (text === "") return undefined;
    try {
      found = parseJson(text);
    } catch {
      break;
    }
  }
  return found;
}

/**
 * Returns an object, which may be JSON in a string. An empty array counts as an empty object,
 * because PHP encodes an empty object as [].
 */
export function objectIn(name: string, value: unknown, { lost }: Conversion): JsonObject {
  if (isObject(value)) return value;
  if (value === undefined || value === null) return {};
  const found = decoded(value);
  if (isObject(found)) return found;
  const isNone = (found ?? undefined) === undefined || (Array.isArray(found) && found.length === 0);
  if (!isNone) lost("unreadable_field", `${name} must be a JSON object: not stored`);
  return {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns an id. Numbers are accepted, because some sources write ids as numbers. */
export function idOf(value: unknown): unknown {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  return value ?? undefined;
}

/** Returns an id as text. Some exports write the same id as a number. */
export function idTextOf(value: unknown): string | undefined {
  const id = idOf(value);
  if (typeof id === "string" || id === undefined) return id;
  return JSON.stringify(id);
}

/** Returns the id of an event. The nil UUID and the max UUID are not ids. */
export function eventIdOf(value: unknown): unknown {
  return isBlankId(value) ? undefined : idOf(value);
}

/** Omits undefined and null members. It must be fast, because it runs for each line. */
export function present(members: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}
