// What an import knows of a format: how one of its lines is told from others, and what event it
// stands for. Holds types, and the reading of values that several formats share.

import { isBlankId } from "../event-uuid.ts";
import { isObject, type JsonObject, parseJson } from "../json-text.ts";
import type { TimeZone } from "../time-zone.ts";

/** An event as the gateway takes it, without its uuid. */
interface SentEvent {
  readonly event: unknown;
  readonly distinct_id: unknown;
  /** ISO 8601, or what else the line has for a time; absent where it says none. */
  readonly timestamp?: unknown;
  readonly properties: JsonObject;
  readonly $set?: JsonObject | undefined;
  readonly $set_once?: JsonObject | undefined;
}

/** What a line stands for. */
export type Converted =
  | {
      readonly event: SentEvent;
      /** The event's id where it comes from, if that is a UUID. */
      readonly uuid?: unknown;
      /**
       * What else names the event where it comes from: a line with the same parts, in this file or
       * in another one, is the same event.
       */
      readonly source?: readonly unknown[] | undefined;
      /** Links between ids that the line states too: events of their own, sent after it. */
      readonly links?: readonly Link[];
      /** What else the line states, as an event of its own that is sent after it. */
      readonly also?: SentEvent | undefined;
    }
  /** The line is no event that is to be stored. */
  | { readonly leftOut: string; readonly detail: string };

export interface Link {
  readonly event: SentEvent;
  readonly source: readonly unknown[];
}

/** Why a part of a line is not in its event, which is stored all the same. */
export type LossCode = "unreadable_field" | "more_groups" | "group_properties";

/** A set of facts, each of a kind. It forgets the oldest of them. */
export interface Shown {
  /** Adds a fact. True: it is new. */
  add(kind: string, fact: string): boolean;
  has(kind: string, fact: string): boolean;
}

export interface FormatOptions {
  /** The group type of a Segment `group` call that does not say its own. */
  readonly groupType: string;
  /** That of Mixpanel's times; undefined: UTC. */
  readonly timeZone?: TimeZone | undefined;
}

/** What a conversion reads a line with. */
export interface Conversion extends FormatOptions {
  /** Notes a part of the line that its event does not have. */
  readonly lost: (code: LossCode, detail: string) => void;
  /** What earlier lines of the file have shown. */
  readonly shown: Shown;
}

export interface Format {
  readonly name: string;
  /** The field with the event's name. Default: `event`. */
  readonly nameField?: string;
  /** Whether times may be those of the clock on a wall, of a zone that no line names. */
  readonly hasLocalTimes?: boolean;
  /** For people: "PostHog's batch export". */
  readonly title: string;
  /** Whether the object, a line of the file, is in this format. */
  recognises(line: JsonObject): boolean;
  /**
   * Whether the line has to be converted; if not, its bytes are an event as they stand. Absent
   * where all have to be.
   */
  needsConversion?(text: Buffer, start: number, end: number): boolean;
  /** Whether a line that has no `uuid` of its own may have it under another name. */
  mayHaveOtherId?(text: Buffer, start: number, end: number): boolean;
  convert(line: JsonObject, conversion: Conversion): Converted;
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** JSON that was made text of, once or several times. */
const encodedMax = 3;

/** The value itself; for a text that holds a JSON object or array, what it holds. */
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
 * The object of a field, also where it is JSON in text. Empty for null and an empty array, which PHP
 * writes for an empty object. Anything else is noted as lost.
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

/** A text that is not empty; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An id, which some write as a number; undefined where there is none. */
export function idOf(value: unknown): unknown {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  return value ?? undefined;
}

/**
 * An id in the one form that uuids are made of: some exports write it as a number, others as text.
 * Undefined where there is none.
 */
export function idTextOf(value: unknown): string | undefined {
  const id = idOf(value);
  if (typeof id === "string" || id === undefined) return id;
  return JSON.stringify(id);
}

/** What names an event where it comes from; undefined for none, also for the nil and the max UUID. */
export function eventIdOf(value: unknown): unknown {
  return isBlankId(value) ? undefined : idOf(value);
}

/**
 * The members that are there. JSON leaves out what is undefined; null is as absent. A loop takes a
 * fourth of the time of Object.entries and back, and most lines have few of many members.
 */
export function present(members: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}
