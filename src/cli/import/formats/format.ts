// What an import knows of a format: how one of its lines is told from others', and what event it
// stands for. Holds types, and the reading of values that several formats share.

import { isObject, type JsonObject } from "../json-text.ts";

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
    }
  /** The line is no event that is to be stored. */
  | { readonly leftOut: string; readonly detail: string };

export interface FormatOptions {
  /** The group type of a Segment `group` call that does not say its own. */
  readonly groupType: string;
}

export interface Format {
  readonly name: string;
  /** The field with the event's name. Default: `event`. */
  readonly nameField?: string;
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
  convert(line: JsonObject, options: FormatOptions): Converted;
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A text that is not empty; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An id, which some write as a number; undefined where there is none. */
export function idOf(value: unknown): unknown {
  return value === null || value === "" ? undefined : value;
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
