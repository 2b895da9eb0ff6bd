// Writes TypeScript types for the events that have a schema, for `capture` of PostHog's SDKs.

import type { EventSchema } from "./rules-file.ts";
import type { JsonSchema } from "./schema-subset.ts";

/** Matches control characters and other characters that a reader of a file cannot see. */
export const hiddenCharacter = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;
const hiddenCharacters = new RegExp(hiddenCharacter.source, "gu");

/** Returns a module of types. `origin` is a sentence for its first line. */
export function typesOf(schemas: readonly EventSchema[], origin: string): string {
  const events = schemas.map(({ event, version, properties }) => {
    const type = objectType(properties as JsonSchema, { indent: "  ", isTop: true });
    return `  /** Version ${version} of the schema. */\n  ${literal(event)}: ${type};\n`;
  });
  return `// ${origin}\n\nexport interface Events {\n${events.join("")}}\n${helpers}`;
}

const helpers = `
/** The properties of an event; any properties if the event has no schema. */
export type PropertiesOf<Event extends string> = Event extends keyof Events
  ? Events[Event]
  : Record<string, unknown>;

type EventName = keyof Events | (string & {});

/** A client of posthog-js whose \`capture\` checks the properties of these events. */
export type BrowserClient<Client extends { capture: unknown }> = Omit<Client, "capture"> & {
  capture<Event extends EventName>(
    event: Event,
    ...properties: Record<never, never> extends PropertiesOf<Event>
      ? [properties?: PropertiesOf<Event> | null, options?: object]
      : [properties: PropertiesOf<Event>, options?: object]
  ): unknown;
};

/** A client of posthog-node whose \`capture\` checks the properties of these events. */
export type NodeClient<Client extends { capture(message: never): unknown }> = Omit<
  Client,
  "capture"
> & {
  capture<Event extends EventName>(
    message: Omit<Parameters<Client["capture"]>[0], "event" | "properties"> & {
      event: Event;
    } & (Record<never, never> extends PropertiesOf<Event>
        ? { properties?: PropertiesOf<Event> }
        : { properties: PropertiesOf<Event> }),
  ): void;
};
`;

const typeNames: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

interface Place {
  readonly indent: string;
  readonly isTop: boolean;
}

function valueType(schema: JsonSchema, indent: string): string {
  if ("const" in schema) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(" | ");
  if (schema.type === undefined) return "unknown";
  const names = [schema.type].flat().map((type) => {
    if (type === "object") return objectType(schema, { indent, isTop: false });
    if (type !== "array") return typeNames[type]!;
    return `Array<${schema.items === undefined ? "unknown" : valueType(schema.items, indent)}>`;
  });
  return [...new Set(names)].join(" | ");
}

function literal(value: unknown): string {
  return withEscapes(JSON.stringify(value));
}

function withEscapes(text: string): string {
  return text.replace(
    hiddenCharacters,
    (character) => `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`,
  );
}

function objectType(schema: JsonSchema, { indent, isTop }: Place): string {
  const required = new Set(schema.required);
  const values = new Map(Object.entries(schema.properties ?? {}));
  const inner = `${indent}  `;
  const lines = [...new Set([...values.keys(), ...required])].map((name) => {
    const type = valueType(values.get(name) ?? {}, inner);
    return `${commentOf(values.get(name), inner)}${inner}${literal(name)}${required.has(name) ? "" : "?"}: ${type};\n`;
  });
  // Properties that begin with $ are allowed by every schema.
  const others = schema.additionalProperties === false ? (isTop ? "`$${string}`" : "") : "string";
  if (others !== "") lines.push(`${inner}[name: ${others}]: unknown;\n`);
  return lines.length === 0 ? "Record<string, never>" : `{\n${lines.join("")}${indent}}`;
}

function commentOf(schema: JsonSchema | undefined, indent: string): string {
  const text = schema?.description ?? schema?.title;
  if (text === undefined) return "";
  const words = withEscapes(text.replaceAll("*/", "* /").split(/\s+/).join(" ").trim());
  return `${indent}/** ${words} */\n`;
}
