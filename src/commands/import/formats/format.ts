// The interface of an import format: how it recognises a line, and how it converts the line to an
// event. Contains types, and parsers of values for several formats.

import { isBlankId } from "../event-uuid.ts";
import { isObject, type JsonObject, parseJson } from "../json-text.ts";
import type { TimeZone } from "../time-zone.ts";

/** An event in the form that the gateway accepts, without its uuid. */
interface SentEvent {
  readonly event: unknown;
  readonly distinct_id: unknown;
  /** The time in ISO 8601, or the unparsed time of the line; absent if the line has no time. */
  readonly timestamp?: unknown;
  readonly properties: JsonObject;
  readonly $set?: JsonObject | undefined;
  readonly $set_once?: JsonObject | undefined;
}

/** The result of the conversion of a line. */
export type Converted =
  | {
      readonly event: SentEvent;
      /** The id of the event in its source, if the id is a UUID. */
      readonly uuid?: unknown;
      /**
       * Further parts that identify the event in its source. Lines with equal parts are the same
       * event, even in two files.
       */
      readonly source?: readonly unknown[] | undefined;
      /** The links between ids in the line. They are sent as separate events after the event. */
      readonly links?: readonly Link[];
      /** A further event in the line. It is sent after the event. */
      readonly also?: SentEvent | undefined;
    }
  /** A line without an event to store. */
  | { readonly skipped: string; readonly detail: string };

export interface Link {
  readonly event: SentEvent;
  readonly source: readonly unknown[];
}

/** Reasons why a part of a line is not in its event. The event is stored anyway. */
export type LossCode = "unreadable_field" | "more_groups" | "group_properties";

/** A bounded set of facts by kind. It drops the oldest facts. */
export interface Shown {
  /** Adds a fact. Returns true if it is new. */
  add(kind: string, fact: string): boolean;
  has(kind: string, fact: string): boolean;
}

export interface FormatOptions {
  /** The group type of a Segment `group` call without a type. */
  readonly groupType: string;
  /** The time zone of Mixpanel's times; undefined for UTC. */
  readonly timeZone?: TimeZone | undefined;
}

/** The options and callbacks of a conversion. */
export interface Conversion extends FormatOptions {
  /** Records a part of the line that is not in its event. */
  readonly lost: (code: LossCode, detail: string) => void;
  /** The facts from earlier lines of the file. */
  readonly shown: Shown;
}

export interface Format {
  readonly name: string;
  /** The field with the name of the event. Default: `event`. */
  readonly nameField?: string;
  /** Whether times may be local times of a zone that the line does not name. */
  readonly hasLocalTimes?: boolean;
  /** The name of the format in messages, such as "PostHog's batch export". */
  readonly title: string;
  /** Returns whether a line of the file, as an object, has this format. */
  recognises(line: JsonObject): boolean;
  /**
   * Returns whether the line must be converted. If not, its bytes are already an event. Absent if
   * all lines must be converted.
   */
  needsConversion?(text: Buffer, start: number, end: number): boolean;
  /** Returns whether a line without a `uuid` may have its id under another name. */
  mayHaveOtherId?(text: Buffer, start: number, end: number): boolean;
  convert(line: JsonObject, conversion: Conversion): Converted;
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Maximum number of times that JSON may be encoded as text. */
const encodedMax = 3;

/** Returns the JSON object or array in a text. Returns any other value unchanged. */
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
 * Returns the object of a field, also if it is JSON in text. Returns an empty object for null, and
 * for an empty array, which PHP writes for an empty object. Records any other value as lost.
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

/** Returns a non-empty text; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns an id, which some sources write as a number; undefined if the value is not an id. */
export function idOf(value: unknown): unknown {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  return value ?? undefined;
}

/**
 * Returns an id in the form from which uuids are derived, because some exports write it as a number
 * and others as text. Returns undefined if the value is not an id.
 */
export function idTextOf(value: unknown): string | undefined {
  const id = idOf(value);
  if (typeof id === "string" || id === undefined) return id;
  return JSON.stringify(id);
}

/** Returns the id of an event in its source; undefined if it is missing, or the nil or max UUID. */
export function eventIdOf(value: unknown): unknown {
  return isBlankId(value) ? undefined : idOf(value);
}

/**
 * Returns the members that are present. JSON omits undefined members; null counts as absent. The
 * loop takes a quarter of the time of Object.entries, because most lines have few of many possible
 * members.
 */
export function present(members: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}
