// Rules files and events that make the rules slow: for each part of a file, the largest file that
// `rules check` accepts, and the events for which it takes the longest.

import { parseRules } from "../../src/rules/parse.ts";

interface WorstCase {
  readonly name: string;
  /** Returns a file of a size. The largest accepted one is measured. */
  readonly file: (size: number) => string;
  /** Returns one event of a batch, as JSON. */
  readonly event: (index: number, size: number) => string;
}

const sizeMax = 1_000;

/** Returns the largest size whose file is accepted, or 0. */
export function largestSize({ file }: WorstCase): number {
  let [accepted, refused] = [0, sizeMax + 1];
  while (refused - accepted > 1) {
    const size = Math.floor((accepted + refused) / 2);
    if ("rules" in parseRules(file(size))) accepted = size;
    else refused = size;
  }
  return accepted;
}

/** Returns a batch of at least this many bytes. */
export function bodyOf(event: (index: number) => string, bytes: number): Buffer {
  const parts: string[] = [];
  for (let length = 0, index = 0; length < bytes; index++) {
    const one = event(index);
    parts.push(one);
    length += one.length + 1;
  }
  return Buffer.from(`{"api_key":"k","batch":[${parts.join(",")}]}`);
}

function list(count: number, of: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => of(index)).join(",");
}

function rules(count: number, of: (index: number) => string): string {
  if (count === 0) return "rules: []\n";
  const lines = Array.from({ length: count }, (_, index) => `  - {name: r${index}, ${of(index)}}`);
  return `rules:\n${lines.join("\n")}\n`;
}

/** Returns rules with lists of at most 200 elements, which have `count` elements in all. */
function lists(count: number, of: (list: string) => string, element: (at: number) => string) {
  return rules(Math.ceil(count / 200), (index) =>
    of(list(Math.min(200, count - 200 * index), (at) => element(200 * index + at))),
  );
}

function event(name: string, properties = ""): string {
  return `{"event":"${name}","distinct_id":"b","properties":{${properties}}}`;
}

const unit = (index: number): string => index.toString(36);
const a = (count: number): string => "a".repeat(count);

/** Returns a text of a length that no other index has. */
function distinct(index: number, length: number): string {
  const text = unit(index);
  return `${a(Math.max(0, length - text.length))}${text}`;
}

function innerGlob(index: number): string {
  return `"*${Array.from({ length: 6 }, (_, at) => `aa${unit(index)}${at}`).join("*")}*"`;
}

const observed = (globs: string) => `mode: observe, match: {event: [${globs}]}, drop: true`;
const observedSdk = (globs: string) => `mode: observe, match: {sdk: [${globs}]}, drop: true`;
const cookieless = (index: number) =>
  `"$cookieless_mode":true,"$raw_user_agent":"${unit(index)}","$host":"h","distinct_id":"$posthog_cookieless"`;

function property(name: string, schema: string): WorstCase["file"] {
  return () => `schemas: [{event: e, version: 1, mode: stamp, properties: {${name}: ${schema}}}]`;
}

const cutNames: WorstCase["file"] = () =>
  `privacy: {cut_query: [${list(200, (at) => `name${at}`)}]}\n`;
const url = (part: string) => () => event("e", `"$current_url":"?${part.repeat(1_000)}"`);

export const worstCases: readonly WorstCase[] = [
  {
    name: "event: globs with inner parts, long names",
    file: (size) => lists(size, observed, innerGlob),
    event: (index) => event(distinct(index, 200)),
  },
  {
    name: "event: globs with inner parts, short names",
    file: (size) => lists(size, observed, innerGlob),
    event: (index) => event(unit(index)),
  },
  {
    name: "event: globs with 90 stars",
    file: (size) => lists(size, observed, (at) => `"${"*a".repeat(90)}*${at}x*"`),
    event: (index) => event(distinct(index, 200)),
  },
  {
    name: "event: globs with one star",
    file: (size) => lists(size, observed, (at) => `"aaa${at}*"`),
    event: (index) => event(distinct(index, 6)),
  },
  {
    name: "event: rules with globs, all match",
    file: (size) => rules(size, (at) => `mode: observe, match: {event: "a*"}, remove: [p${at}]`),
    event: (index) => event(distinct(index, 8)),
  },
  {
    name: "event: 32 rules, their removals differ",
    file: (size) =>
      rules(
        26,
        (at) =>
          `match: {event: "*${String.fromCharCode(97 + at)}"}, remove: [${list(Math.min(200, size), (one) => `p${at}z${one}`)}]`,
      ),
    event: (index) => event(`${unit(index)}${String.fromCharCode(97 + (index % 26))}`),
  },
  {
    name: "sdk: globs with inner parts in one rule, long",
    file: (size) => lists(size, observedSdk, innerGlob),
    event: (index) => event("e", `"$lib":"${distinct(index, 200)}"`),
  },
  {
    name: "sdk: globs with inner parts in many rules, long",
    file: (size) => rules(size, (at) => observedSdk(`"*aa${at}b*"`)),
    event: (index) => event("e", `"$lib":"${distinct(index, 200)}"`),
  },
  {
    name: "sdk: exact texts, short",
    file: (size) => rules(size, (at) => `match: {sdk: x${at}}, drop: true`),
    event: (index) => event("e", `"$lib":"${unit(index)}"`),
  },
  {
    name: "sdk: exact texts, long",
    file: (size) => rules(size, (at) => `match: {sdk: x${at}}, drop: true`),
    event: (index) => event("e", `"$lib":"${distinct(index, 1_270)}"`),
  },
  {
    name: "properties: 5 equal values per rule",
    file: (size) =>
      rules(size, (at) => `match: {properties: {a: x, b: 1, c: 1, d: 1, e: ${at}}}, drop: true`),
    event: () => event("e", `"a":"x","b":1,"c":1,"d":1,"e":-1`),
  },
  {
    name: "properties: long lists of values",
    file: (size) =>
      rules(
        size,
        (at) => `match: {properties: {a: [${list(100, (one) => `${at}${one}`)}]}}, drop: true`,
      ),
    event: () => event("e", `"a":123456`),
  },
  {
    name: "properties: a long text",
    file: (size) => rules(size, (at) => `match: {properties: {a: "${at}"}}, drop: true`),
    event: (index) => event("e", `"a":"\\n${distinct(index, 1_190)}"`),
  },
  {
    name: "properties: 5 absent ones per rule",
    file: (size) =>
      rules(
        size,
        (at) =>
          `match: {properties: {${list(4, (one) => `${"abcd"[one]}: {absent: true}`)}, e${at}: {exists: true}}}, drop: true`,
      ),
    event: () => event("e", `"x":1`),
  },
  {
    name: "bot, short User-Agents",
    file: (size) => rules(size, () => "mode: observe, match: {bot: true}, drop: true"),
    event: (index) => event("e", `"$raw_user_agent":"${unit(index)}"`),
  },
  {
    name: "bot, long User-Agents",
    file: (size) => rules(size, () => "mode: observe, match: {bot: true}, drop: true"),
    event: (index) => event("e", `"$raw_user_agent":"Mozilla/5.0 (${distinct(index, 480)})"`),
  },
  {
    name: "hash: numbers",
    file: (size) =>
      lists(
        size,
        (paths) => `hash: [${paths}]`,
        (at) => `p${unit(at)}`,
      ),
    event: (_, size) =>
      event(
        "e",
        list(size, (at) => `"p${unit(at)}":1`),
      ),
  },
  {
    name: "hash: escaped texts",
    file: (size) =>
      lists(
        size,
        (paths) => `hash: [${paths}]`,
        (at) => `p${unit(at)}`,
      ),
    event: (_, size) =>
      event(
        "e",
        list(size, (at) => `"p${unit(at)}":"\\n"`),
      ),
  },
  {
    name: "hash: the same path in many rules",
    file: (size) => rules(size, () => "hash: [p]"),
    event: () => event("e", `"p":1`),
  },
  {
    name: "cut: many paths, escaped",
    file: (size) =>
      lists(
        size,
        (paths) => `cut: {${paths}}`,
        (at) => `p${unit(at)}: 1`,
      ),
    event: (_, size) =>
      event(
        "e",
        list(size, (at) => `"p${unit(at)}":"\\n\\n"`),
      ),
  },
  {
    name: "cut: the same path in many rules",
    file: (size) => rules(size, (at) => `cut: {p: ${4_000 - at}}`),
    event: () => event("e", `"p":"${a(4_090)}"`),
  },
  {
    name: "cut: the same path in many rules, escaped",
    file: (size) => rules(size, (at) => `cut: {p: ${4_000 - at}}`),
    event: () => event("e", `"p":"\\n${a(4_090)}"`),
  },
  {
    name: "set: absent paths",
    file: (size) =>
      lists(
        size,
        (members) => `set: {${members}}`,
        (at) => `p${at}: 1`,
      ),
    event: () => event("e"),
  },
  {
    name: "set: absent paths, long values",
    file: (size) =>
      lists(
        size,
        (members) => `set: {${members}}`,
        (at) => `p${at}: "${a(200)}"`,
      ),
    event: () => event("e"),
  },
  {
    name: "set: the same path in many rules",
    file: (size) => rules(size, (at) => `set: {p: ${at}}`),
    event: () => event("e", `"p":-1`),
  },
  {
    name: "set and remove members of $set",
    file: (size) =>
      `${rules(1, () => `set: {${list(10, (at) => `$set.p${at}: 1`)}}`)}${list(size, (at) => `\n  - {name: q${at}, remove: [$set]}`).replaceAll(",\n", "\n")}\n`,
    event: () => event("e"),
  },
  {
    name: "remove: absent paths",
    file: (size) =>
      lists(
        size,
        (paths) => `match: {lane: live}, remove: [${paths}]`,
        (at) => `p${at}`,
      ),
    event: () => event("e", `"p1":1`),
  },
  {
    name: "remove: present paths",
    file: (size) =>
      lists(
        size,
        (paths) => `remove: [${paths}]`,
        (at) => `p${unit(at)}`,
      ),
    event: (_, size) =>
      event(
        "e",
        list(size, (at) => `"p${unit(at)}":1`),
      ),
  },
  {
    name: "keep_only, few properties",
    file: (size) => rules(size, () => "keep_only: [a, b]"),
    event: () => event("e", `"a":1,"b":1`),
  },
  {
    name: "keep_only, many properties",
    file: (size) => rules(size, () => `keep_only: [${list(100, (at) => unit(at + 400))}]`),
    event: () =>
      event(
        "e",
        list(100, (at) => `"${unit(at + 400)}":1`),
      ),
  },
  {
    name: "sample",
    file: (size) => rules(size, () => "mode: observe, sample: 0.5"),
    event: () => event("e"),
  },
  {
    name: "rename",
    file: (size) => rules(size, (at) => `rename: n${at}`),
    event: () => event("e"),
  },
  {
    name: "rename, with globs",
    file: (size) => rules(size, (at) => `match: {event: [n*, e*, "*x${at}a*"]}, rename: n${at}`),
    event: () => event("e"),
  },
  {
    name: "conditions without an effect",
    file: (size) => rules(size, () => "match: {lane: historical}, remove: [p]"),
    event: () => event("e", `"p":1`),
  },
  { name: "cut_query: &&&", file: cutNames, event: url("&") },
  { name: "cut_query: a&a&", file: cutNames, event: url("a&") },
  { name: "cut_query: %61&", file: cutNames, event: url("%61&") },
  { name: "cut_query: %c3%a9&", file: cutNames, event: url("%c3%a9&") },
  { name: "cut_query: escapes", file: cutNames, event: url("\\n&") },
  { name: "cut_query: cut parameters", file: cutNames, event: url("name1&a&") },
  {
    name: "cookieless",
    file: () => "privacy: {cookieless: true}\n",
    event: (index) => event("e", cookieless(index)),
  },
  {
    name: "cookieless, invented time zones",
    file: () => "privacy: {cookieless: true}\n",
    event: (index) => event("e", `${cookieless(index)},"$timezone":"z${unit(index)}"`),
  },
  {
    name: "cookieless, long User-Agents",
    file: () => "privacy: {cookieless: true}\n",
    event: (index) =>
      event("e", cookieless(index).replace(`"${unit(index)}"`, `"${distinct(index, 4_000)}"`)),
  },
  {
    name: "cookieless, samples",
    file: (size) =>
      `privacy: {cookieless: true}\n${rules(size, () => "mode: observe, sample: 0.5")}`,
    event: (index) => event("e", cookieless(index)),
  },
  {
    name: "schema: pattern, long text",
    file: property("additionalProperties", '{pattern: "^[a-z]*$"}'),
    event: () => event("e", `"p":"${a(4_090)}"`),
  },
  {
    name: "schema: pattern, not ASCII",
    file: property("additionalProperties", '{pattern: "^[^x]*x*$"}'),
    event: () =>
      event(
        "e",
        list(500, (at) => `"p${unit(at)}":"é"`),
      ),
  },
  {
    name: "schema: pattern, escapes",
    file: property("additionalProperties", '{pattern: "^[^x]*x*$"}'),
    event: () =>
      event(
        "e",
        list(500, (at) => `"p${unit(at)}":"\\n"`),
      ),
  },
  {
    name: "schema: enum of 200 texts",
    file: property(
      "additionalProperties",
      `{enum: [${list(200, (at) => `"${String(at).padStart(3, "0")}"`)}]}`,
    ),
    event: () =>
      event(
        "e",
        list(500, (at) => `"p${unit(at)}":"199"`),
      ),
  },
  {
    name: "schema: empty objects",
    file: property(
      "additionalProperties",
      `{items: {properties: {${list(480, (at) => `p${at}: {}`)}}}}`,
    ),
    event: () => event("e", `"p":[${list(1_000, () => "{}")}]`),
  },
  {
    name: "schema: equal errors",
    file: property("additionalProperties", `{items: {required: [${list(200, (at) => `p${at}`)}]}}`),
    event: () => event("e", `"${a(120)}":[${list(1_000, () => "{}")}]`),
  },
  {
    name: "schema: properties that are not allowed",
    file: property("additionalProperties", "false"),
    event: () =>
      event(
        "e",
        list(500, (at) => `"p${unit(at)}":1`),
      ),
  },
  {
    name: "schema: array of integers",
    file: property("additionalProperties", "{items: {type: integer}}"),
    event: () => event("e", `"p":[${list(1_000, () => "1")}]`),
  },
  {
    name: "schema: nested arrays",
    file: property("additionalProperties", "{items: {items: {items: {type: integer}}}}"),
    event: () => event("e", `"p":[${list(500, () => "[[]]")}]`),
  },
  {
    name: "schema: 480 absent properties",
    file: property("properties", `{${list(480, (at) => `p${at}: {}`)}}`),
    event: () => event("e"),
  },
  {
    name: "schema: 200 required properties",
    file: property("required", `[${list(200, (at) => `p${at}`)}]`),
    event: () => event("e"),
  },
];
