// Rules files and events that make the rules slow: for each part of a file, the largest file that
// `rules check` accepts, and the events for which it takes the longest.

import { parseRules } from "../../src/rules/parse.ts";

/** Returns a file of a size. The largest accepted one is measured. */
type File = (size: number) => string;
/** Returns one event of a batch, as JSON. */
type Event = (index: number, size: number) => string;

const sizeMax = 1_000;

/** Returns the largest size whose file is accepted, or 0. */
export function largestSize(file: File): number {
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

const unit = (index: number): string => index.toString(36);
const a = (count: number): string => "a".repeat(count);

/** Returns a text of a length that no other index has. */
function distinct(index: number, length: number): string {
  const text = unit(index);
  return `${a(Math.max(0, length - text.length))}${text}`;
}

/** Files with `size` rules. */
function rules(of: (index: number) => string): File {
  return (size) => {
    if (size === 0) return "rules: []\n";
    const lines = Array.from({ length: size }, (_, at) => `  - {name: r${at}, ${of(at)}}`);
    return `rules:\n${lines.join("\n")}\n`;
  };
}

/** Files with rules that have lists of at most 200 elements, which have `size` elements in all. */
function lists(of: (list: string) => string, element: (at: number) => string): File {
  return (size) =>
    rules((index) =>
      of(list(Math.min(200, size - 200 * index), (at) => element(200 * index + at))),
    )(Math.ceil(size / 200));
}

const observed = (condition: string) => (globs: string) =>
  `mode: observe, match: {${condition}: [${globs}]}, drop: true`;
const innerGlob = (index: number) =>
  `"*${Array.from({ length: 6 }, (_, at) => `aa${unit(index)}${at}`).join("*")}*"`;
const innerNames = lists(observed("event"), innerGlob);
const exactSdks = rules((at) => `match: {sdk: x${at}}, drop: true`);
const bots = rules(() => "mode: observe, match: {bot: true}, drop: true");
const samples = rules(() => "mode: observe, sample: 0.5");
const hashes = lists(
  (paths) => `hash: [${paths}]`,
  (at) => `p${unit(at)}`,
);
const cutsOfOne = rules((at) => `cut: {p: ${4_000 - at}}`);
const sets = (value: string) =>
  lists(
    (members) => `set: {${members}}`,
    (at) => `p${at}: ${value}`,
  );
const cookielessOnly = () => "privacy: {cookieless: true}\n";
const cutNames = () => `privacy: {cut_query: [${list(200, (at) => `name${at}`)}]}\n`;

function schema(keyword: string, value: string): File {
  return () => `schemas: [{event: e, version: 1, mode: stamp, properties: {${keyword}: ${value}}}]`;
}

const others = (value: string) => schema("additionalProperties", value);

function event(name: string, properties = ""): string {
  return `{"event":"${name}","distinct_id":"b","properties":{${properties}}}`;
}

/** Events whose names have a length. */
const names =
  (length: number): Event =>
  (index) =>
    event(distinct(index, length));
/** Events with the same properties. */
const same =
  (properties = ""): Event =>
  () =>
    event("e", properties);
/** Events with one property, whose text has a length and no other event has. */
const texts =
  (name: string, length: number, before = ""): Event =>
  (index) =>
    event("e", `"${name}":"${before}${distinct(index, length)}"`);
/** Events with `count` properties; default: as many as the size of the file. */
const members =
  (value: string, count?: number): Event =>
  (_, size) =>
    event(
      "e",
      list(count ?? size, (at) => `"p${unit(at)}":${value}`),
    );
const url = (part: string) => same(`"$current_url":"?${part.repeat(1_000)}"`);
const cookieless =
  (agentChars: number, more = ""): Event =>
  (index) =>
    event(
      "e",
      `"$cookieless_mode":true,"$raw_user_agent":"${distinct(index, agentChars)}","$host":"h","distinct_id":"$posthog_cookieless"${more.replace("#", unit(index))}`,
    );

export const worstCases: readonly (readonly [name: string, file: File, event: Event])[] = [
  ["event: globs with inner parts, long names", innerNames, names(200)],
  ["event: globs with inner parts, short names", innerNames, names(0)],
  [
    "event: globs with 90 stars",
    lists(observed("event"), (at) => `"${"*a".repeat(90)}*${at}x*"`),
    names(200),
  ],
  ["event: globs with one star", lists(observed("event"), (at) => `"aaa${at}*"`), names(6)],
  [
    "event: rules with globs, all match",
    rules((at) => `mode: observe, match: {event: "a*"}, remove: [p${at}]`),
    names(8),
  ],
  [
    "event: 26 rules, their removals differ",
    (size) =>
      rules((at) => {
        const paths = list(Math.min(200, size), (one) => `p${at}z${one}`);
        return `match: {event: "*${letter(at)}"}, remove: [${paths}]`;
      })(26),
    (index) => event(`${unit(index)}${letter(index % 26)}`),
  ],
  [
    "sdk: globs with inner parts in one rule, long",
    lists(observed("sdk"), innerGlob),
    texts("$lib", 200),
  ],
  [
    "sdk: globs with inner parts in many rules, long",
    rules((at) => observed("sdk")(`"*aa${at}b*"`)),
    texts("$lib", 200),
  ],
  ["sdk: exact texts, short", exactSdks, texts("$lib", 0)],
  ["sdk: exact texts, long", exactSdks, texts("$lib", 1_270)],
  [
    "properties: 5 equal values per rule",
    rules((at) => `match: {properties: {a: x, b: 1, c: 1, d: 1, e: ${at}}}, drop: true`),
    same(`"a":"x","b":1,"c":1,"d":1,"e":-1`),
  ],
  [
    "properties: long lists of values",
    rules((at) => `match: {properties: {a: [${list(100, (one) => `${at}${one}`)}]}}, drop: true`),
    same(`"a":123456`),
  ],
  [
    "properties: a long text",
    rules((at) => `match: {properties: {a: "${at}"}}, drop: true`),
    texts("a", 1_190, "\\n"),
  ],
  [
    "properties: 5 absent ones per rule",
    rules((at) => {
      const absent = list(4, (one) => `${"abcd"[one]}: {absent: true}`);
      return `match: {properties: {${absent}, e${at}: {exists: true}}}, drop: true`;
    }),
    same(`"x":1`),
  ],
  ["bot, short User-Agents", bots, texts("$raw_user_agent", 0)],
  ["bot, long User-Agents", bots, texts("$raw_user_agent", 480, "Mozilla/5.0 ")],
  ["hash: numbers", hashes, members("1")],
  ["hash: escaped texts", hashes, members(`"\\n"`)],
  ["hash: the same path in many rules", rules(() => "hash: [p]"), same(`"p":1`)],
  [
    "cut: many paths, escaped",
    lists(
      (paths) => `cut: {${paths}}`,
      (at) => `p${unit(at)}: 1`,
    ),
    members(`"\\n\\n"`),
  ],
  ["cut: the same path in many rules", cutsOfOne, same(`"p":"${a(4_090)}"`)],
  ["cut: the same path in many rules, escaped", cutsOfOne, same(`"p":"\\n${a(4_090)}"`)],
  ["set: absent paths", sets("1"), same()],
  ["set: absent paths, long values", sets(`"${a(200)}"`), same()],
  ["set: the same path in many rules", rules((at) => `set: {p: ${at}}`), same(`"p":-1`)],
  [
    "set and remove members of $set",
    rules((at) => (at === 0 ? `set: {${list(10, (one) => `$set.p${one}: 1`)}}` : "remove: [$set]")),
    same(),
  ],
  [
    "remove: absent paths",
    lists(
      (paths) => `match: {lane: live}, remove: [${paths}]`,
      (at) => `p${at}`,
    ),
    same(`"p1":1`),
  ],
  [
    "remove: present paths",
    lists(
      (paths) => `remove: [${paths}]`,
      (at) => `p${unit(at)}`,
    ),
    members("1"),
  ],
  ["keep_only, few properties", rules(() => "keep_only: [a, b]"), same(`"a":1,"b":1`)],
  [
    "keep_only, many properties",
    rules(() => `keep_only: [${list(100, (at) => `p${unit(at)}`)}]`),
    members("1", 100),
  ],
  ["sample", samples, same()],
  ["rename", rules((at) => `rename: n${at}`), same()],
  [
    "rename, with globs",
    rules((at) => `match: {event: [n*, e*, "*x${at}a*"]}, rename: n${at}`),
    same(),
  ],
  [
    "conditions without an effect",
    rules(() => "match: {lane: historical}, remove: [p]"),
    same(`"p":1`),
  ],
  ...["&", "a&", "%61&", "%c3%a9&", "\\n&", "name1&a&"].map(
    (part) => [`cut_query: ${part}`, cutNames, url(part)] as const,
  ),
  ["cookieless", cookielessOnly, cookieless(0)],
  ["cookieless, invented time zones", cookielessOnly, cookieless(0, `,"$timezone":"z#"`)],
  ["cookieless, long User-Agents", cookielessOnly, cookieless(4_000)],
  ["cookieless, samples", (size) => `${cookielessOnly()}${samples(size)}`, cookieless(0)],
  ["schema: pattern, long text", others('{pattern: "^[a-z]*$"}'), same(`"p":"${a(4_090)}"`)],
  ["schema: pattern, not ASCII", others('{pattern: "^[^x]*x*$"}'), members(`"é"`, 500)],
  ["schema: pattern, escapes", others('{pattern: "^[^x]*x*$"}'), members(`"\\n"`, 500)],
  [
    "schema: enum of 200 texts",
    others(`{enum: [${list(200, (at) => `"${String(at).padStart(3, "0")}"`)}]}`),
    members(`"199"`, 500),
  ],
  [
    "schema: empty objects",
    others(`{items: {properties: {${list(480, (at) => `p${at}: {}`)}}}}`),
    same(`"p":[${list(1_000, () => "{}")}]`),
  ],
  [
    "schema: equal errors",
    others(`{items: {required: [${list(200, (at) => `p${at}`)}]}}`),
    same(`"${a(120)}":[${list(1_000, () => "{}")}]`),
  ],
  ["schema: properties that are not allowed", others("false"), members("1", 500)],
  [
    "schema: array of integers",
    others("{items: {type: integer}}"),
    same(`"p":[${list(1_000, () => "1")}]`),
  ],
  [
    "schema: nested arrays",
    others("{items: {items: {items: {type: integer}}}}"),
    same(`"p":[${list(500, () => "[[]]")}]`),
  ],
  [
    "schema: 480 absent properties",
    schema("properties", `{${list(480, (at) => `p${at}: {}`)}}`),
    same(),
  ],
  [
    "schema: 200 required properties",
    schema("required", `[${list(200, (at) => `p${at}`)}]`),
    same(),
  ],
];

function letter(index: number): string {
  return String.fromCharCode(97 + index);
}
