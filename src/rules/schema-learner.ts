// Proposes the schema of an event from the properties of its events. The proposal has names, types
// and presence. It has values only as an `enum`: of short words that several people sent.

import { isSdkProperty } from "./event-schema.ts";
import type { Scalar } from "./rules-file.ts";

export const enumForm = {
  /** Minimum number of events for `required` and for an `enum`. */
  eventsMin: 20,
  valuesMax: 10,
  wordCharsMax: 40,
  /** Minimum number of people who sent a value. */
  peopleMin: 3,
} as const;
const { eventsMin, valuesMax, wordCharsMax, peopleMin } = enumForm;
/** Maximum properties of a proposal. */
export const learnedPropertiesMax = 100;
/** Maximum characters of a name in a proposal. A name has at least one. */
export const learnedNameCharsMax = 100;
const wordForm = /^[A-Za-z][\w.-]*$/;
/** Parts of the names of properties whose values may be personal data. */
const personalNames =
  /address|birth|city|email|first|last|login|mail|name|pass|person|phone|secret|street|surname|tel|token|user|zip|(?:^|_)ip(?:$|_)/i;

interface LearnedProperty {
  readonly name: string;
  /** Number of events that have the property. */
  readonly events: number;
  readonly schema: {
    readonly type?: string | readonly string[];
    readonly enum?: readonly Scalar[];
  };
}

export interface LearnedSchema {
  readonly events: number;
  /** The most frequent properties first. */
  readonly properties: readonly LearnedProperty[];
  readonly required: readonly string[];
  /** Minimum number of properties that are not in the proposal. */
  readonly omitted: number;
}

export class SchemaLearner {
  readonly #properties = new Map<string, PropertyLearner>();
  #events = 0;
  #omitted = new Set<string>();

  get events(): number {
    return this.#events;
  }

  /** Learns from one event. `person` is its distinct id. */
  add(properties: object, person: string): void {
    this.#events++;
    for (const [name, value] of Object.entries(properties)) {
      if (isSdkProperty(name)) continue;
      const known = this.#properties.get(name) ?? this.#begin(name);
      known?.add(value, person);
    }
  }

  #begin(name: string): PropertyLearner | undefined {
    const isUsable = name !== "" && name.length <= learnedNameCharsMax;
    if (!isUsable || this.#properties.size >= 10 * learnedPropertiesMax) {
      if (this.#omitted.size < 10 * learnedPropertiesMax) this.#omitted.add(name);
      return undefined;
    }
    const learner = new PropertyLearner(name);
    this.#properties.set(name, learner);
    return learner;
  }

  result(): LearnedSchema {
    const sorted = [...this.#properties.values()].sort(
      (one, other) => other.events - one.events || (one.name < other.name ? -1 : 1),
    );
    const properties = sorted.slice(0, learnedPropertiesMax).map((one) => one.result());
    const required = properties
      .filter(({ events }) => events === this.#events && events >= eventsMin)
      .map(({ name }) => name);
    const omitted = sorted.length - properties.length + this.#omitted.size;
    return { events: this.#events, properties, required, omitted };
  }
}

class PropertyLearner {
  readonly name: string;
  readonly #types = new Set<string>();
  /** The people who sent each text; undefined if the texts are not a small set of words. */
  #texts: Map<string, Set<string>> | undefined = new Map();
  events = 0;

  constructor(name: string) {
    this.name = name;
    if (personalNames.test(name)) this.#texts = undefined;
  }

  add(value: unknown, person: string): void {
    this.events++;
    this.#types.add(typeOf(value));
    if (typeof value === "string") this.#addText(value, person);
  }

  #addText(text: string, person: string): void {
    if (this.#texts === undefined) return;
    const people = this.#texts.get(text);
    if (people !== undefined) {
      if (people.size < peopleMin) people.add(person);
    } else if (isWord(text) && this.#texts.size < valuesMax) {
      this.#texts.set(text, new Set([person]));
    } else {
      this.#texts = undefined;
    }
  }

  result(): LearnedProperty {
    const { name, events } = this;
    return { name, events, schema: this.#schema() };
  }

  #schema(): LearnedProperty["schema"] {
    const types = new Set(this.#types);
    if (types.has("number")) types.delete("integer");
    const others = [...types].filter((type) => type !== "string" && type !== "null");
    const texts = this.#texts;
    const isEnum =
      texts !== undefined &&
      types.has("string") &&
      others.length === 0 &&
      this.events >= eventsMin &&
      [...texts.values()].every(({ size }) => size >= peopleMin);
    if (isEnum)
      return { enum: [...[...texts.keys()].sort(), ...(types.has("null") ? [null] : [])] };
    const sorted = [...types].sort();
    return { type: sorted.length === 1 ? sorted[0]! : sorted };
  }
}

function isWord(text: string): boolean {
  return text.length <= wordCharsMax && wordForm.test(text);
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
