// Reads a rules file: YAML, checked against the limits, the types and the conflicts between rules.

import { setImmediate as nextTurn } from "node:timers/promises";
import { isMap, isScalar, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { lanes } from "../platform/base/lane.ts";
import { findConflicts } from "./conflicts.ts";
import {
  cutBytesMax,
  elementsMax,
  rulesFileBytesMax,
  rulesMax,
  ruleTextCharsMax,
  schemasMax,
} from "./limits.ts";
import {
  type Action,
  type EventSchema,
  effectProperties,
  ipRules,
  type Match,
  noPrivacy,
  type Privacy,
  type PropertyMatch,
  type PropertyPath,
  type Rule,
  type RulesFile,
  ruleModes,
  type Scalar,
  schemaModes,
  splitPath,
} from "./rules-file.ts";
import { tooManySteps } from "./rules-work.ts";
import { readPropertiesSchema } from "./schema-subset.ts";
import { isGlob } from "./text-patterns.ts";
import { type Member, type RuleError, shown, YamlReader } from "./yaml-reader.ts";

export type { RuleError } from "./yaml-reader.ts";

export type ParsedRules = { readonly rules: RulesFile } | { readonly errors: readonly RuleError[] };

export const ruleNameForm = /^[a-z0-9-]{1,64}$/;
/** Properties that rules never see, because requests are assigned to a project by them. */
export const keyProperties: readonly string[] = ["api_key", "token"];

/** The distinct id in the properties. Clients send it there or next to the properties. */
export const distinctIdProperties: readonly string[] = ["distinct_id", "$distinct_id"];
/** Actions that would change it in some of the events only. */
const changingKinds: readonly string[] = ["remove", "hash", "cut", "set"];

/** Actions that would replace such a property by a value without members. */
const wholeKinds: readonly string[] = ["hash", "cut", "set"];

const fileMembers = ["privacy", "rules", "schemas"];
const privacyMembers = ["ip", "cut_query", "cut_fragment", "cookieless"];
const matchMembers = ["event", "sdk", "sdk_version", "lane", "bot", "properties"];
/** In the order in which a rule applies its actions. */
const actionMembers = [
  "drop",
  "quarantine",
  "sample",
  "keep_only",
  "remove",
  "hash",
  "cut",
  "set",
  "rename",
] as const;
const ruleMembers = ["name", "mode", "match", ...actionMembers];
const schemaMembers = ["event", "version", "mode", "properties"];

const tooLarge: ParsedRules = {
  errors: [
    {
      line: 1,
      column: 1,
      message: `the file is larger than ${rulesFileBytesMax} bytes, the maximum of a rules file`,
    },
  ],
};

/** Decodes and reads a rules file. Checks its size before anything else. */
export function parseRulesBytes(bytes: Uint8Array): ParsedRules {
  if (bytes.length > rulesFileBytesMax) return tooLarge;
  const text = new TextDecoder().decode(bytes);
  // The decoder replaces invalid bytes by U+FFFD.
  const isUtf8 = Buffer.from(text).equals(withoutMark(bytes));
  if (isUtf8) return parseRules(text);
  const before = text.slice(0, text.indexOf("\ufffd")).split("\n");
  const message = "a byte that is not UTF-8: a rules file is text in UTF-8";
  return { errors: [{ line: before.length, column: before.at(-1)!.length + 1, message }] };
}

/** Reads a rules file. Returns the rules, or all errors in the order of the text. */
export function parseRules(text: string): ParsedRules {
  const steps = parsing(text, true);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Reads a version that is stored. Its work, its conflicts and conditions that never hold were
 * checked when it was applied: a release that judges them otherwise still uses it. The work is
 * divided among turns of the event loop, because a gateway answers requests meanwhile. Resolves in a
 * turn of its own.
 */
export async function parseStoredRules(text: string): Promise<ParsedRules> {
  const steps = parsing(text, false);
  for (;;) {
    const step = steps.next();
    await nextTurn();
    if (step.done === true) return step.value;
  }
}

/** Yields when the caller may pause. */
function* parsing(text: string, isNew: boolean): Generator<void, ParsedRules> {
  const bytes = Buffer.byteLength(text);
  if (bytes > rulesFileBytesMax) return tooLarge;
  const reader = new YamlReader(text, isNew);
  const root = yield* reader.root();
  const file = root === undefined ? undefined : new RulesReader(reader).file(root, isNew);
  const { errors } = reader;
  if (errors.length > 0) return { errors };
  if (file !== undefined) return { rules: file };
  const message =
    "the file is empty: write `rules: []` for a project without rules, or at least one rule";
  return { errors: [{ line: 1, column: 1, message }] };
}

function withoutMark(bytes: Uint8Array): Uint8Array {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return hasMark ? bytes.subarray(3) : bytes;
}

class RulesReader {
  readonly #yaml: YamlReader;

  constructor(reader: YamlReader) {
    this.#yaml = reader;
  }

  file(root: ParsedNode, isNew: boolean): RulesFile | undefined {
    const what = "the file";
    // A file of comments only has an empty root.
    if (isScalar(root) && root.value === null && root.source === "") return undefined;
    const members = this.#yaml.map(root, { what, key: root, known: fileMembers });
    if (members === undefined) return undefined;
    if ((root as YAMLMap).items.length === 0) {
      const message = "the file has no member: write `rules: []` for a project without rules";
      return this.#yaml.fail(root, message);
    }
    const rules = this.#elements(members.get("rules"), rulesMax, (node) => this.#rule(node));
    const schemas = this.#elements(members.get("schemas"), schemasMax, (node) =>
      this.#schema(node),
    );
    this.#refuseSameNames(rules, schemas);
    const privacy = this.#privacy(members.get("privacy"));
    // Finding the conflicts between very many patterns would take too long, and those of a rule with
    // an error may be false.
    if (isNew && !this.#refuseMuchWork(rules) && this.#yaml.errors.length === 0)
      this.#refuseConflicts(rules);
    return {
      privacy,
      rules: rules.map(({ value }) => value),
      schemas: schemas.map(({ value }) => value),
    };
  }

  #refuseConflicts(rules: readonly Element<Rule>[]): void {
    for (const { index, action, message } of findConflicts(rules.map(({ value }) => value))) {
      const { node, value } = rules[index]!;
      this.#yaml.fail(this.#memberOf(node, action), `rule ${value.name}: ${message}`);
    }
  }

  #privacy(member: Member | undefined): Privacy {
    if (member === undefined) return noPrivacy;
    const members = this.#members(member, "privacy", privacyMembers);
    if (members === undefined) return noPrivacy;
    const cutQuery = members.get("cut_query");
    const names = cutQuery && this.#texts(cutQuery);
    if (names !== undefined && names.length > 1 && names.includes("*"))
      this.#yaml.fail(
        cutQuery!.value!,
        'cut_query has "*", which cuts all parameters: write only "*"',
      );
    return {
      ip: this.#choice(members.get("ip"), ipRules) ?? noPrivacy.ip,
      cutQuery: names ?? noPrivacy.cutQuery,
      cutFragment: this.#boolean(members.get("cut_fragment")) ?? noPrivacy.cutFragment,
      cookieless: this.#boolean(members.get("cookieless")) ?? noPrivacy.cookieless,
    };
  }

  #rule(node: ParsedNode): Rule | undefined {
    const members = this.#yaml.map(node, { what: "a rule", key: node, known: ruleMembers });
    if (members === undefined) return undefined;
    const name = this.#name(node, members.get("name"));
    const mode = this.#choice(members.get("mode"), ruleModes) ?? "enforce";
    const matchMember = members.get("match");
    const match = matchMember === undefined ? {} : this.#match(matchMember);
    const given = actionMembers.flatMap((kind) => members.get(kind) ?? []);
    // A member that is not an action has its own error.
    if (given.length === 0 && members.size === (node as YAMLMap).items.length)
      this.#yaml.fail(
        node,
        `rule ${name ?? ""} has no action: give it one of ${actionMembers.join(", ")}`,
      );
    const actions = given.map((member) => this.#action(member));
    this.#refuseUseless(given);
    if (name === undefined || match === undefined) return undefined;
    return { name, mode, match, actions: actions.filter((action) => action !== undefined) };
  }

  #name(rule: ParsedNode, member: Member | undefined): string | undefined {
    if (member === undefined) return this.#yaml.fail(rule, "a rule has no name: add name: …");
    const name = this.#yaml.text(member, ruleTextCharsMax);
    if (name === undefined || ruleNameForm.test(name)) return name;
    return this.#yaml.fail(
      member.value!,
      `the name of a rule must match [a-z0-9-]{1,64} (got ${shown(name)})`,
    );
  }

  #match(member: Member): Match | undefined {
    const members = this.#members(member, "match", matchMembers);
    if (members === undefined) return undefined;
    if ((member.value as YAMLMap).items.length === 0)
      return this.#yaml.fail(
        member.value!,
        "match has no condition: remove match if the rule is for all events",
      );
    const [event, sdk, sdkVersion, properties] = [
      ...["event", "sdk", "sdk_version", "properties"].map((name) => members.get(name)),
    ];
    return {
      event: event && this.#patterns(event),
      sdk: sdk && this.#patterns(sdk),
      sdkVersion: sdkVersion && this.#patterns(sdkVersion),
      lane: this.#choice(members.get("lane"), lanes),
      bot: this.#boolean(members.get("bot")),
      properties: properties && this.#map(properties, (one) => this.#propertyMatch(one)),
    };
  }

  #propertyMatch(member: Member): PropertyMatch | undefined {
    const { name, key, value } = member;
    if (value !== null && isMap(value)) {
      const known = ["like", "exists", "absent"];
      const members = this.#yaml.map(value, { what: name, key, known });
      const [only] = members?.values() ?? [];
      if (only === undefined || members!.size > 1) {
        if (members?.size !== value.items.length) return undefined;
        const message = `${name} must have one of like: PATTERN, exists: true and absent: true`;
        return this.#yaml.fail(value, message);
      }
      if (only.name === "like") {
        const patterns = this.#patterns(only);
        return patterns && { kind: "like", patterns };
      }
      if (this.#yaml.boolean(only) === undefined) return undefined;
      if ((only.value as { value?: unknown }).value === false) {
        const other = only.name === "exists" ? "absent" : "exists";
        return this.#yaml.fail(only.value!, `${only.name} must be true: write ${other}: true`);
      }
      return { kind: only.name as "exists" | "absent" };
    }
    if (value !== null && isSeq(value)) {
      const elements = this.#bounded(member, value.items as ParsedNode[]);
      const values = elements?.map((element) => this.#compared({ name, key, value: element }));
      return (
        values && { kind: "equals", values: values.flatMap((one) => (one ? [one.value] : [])) }
      );
    }
    const scalar = this.#compared(member);
    const isPlain = isScalar(value) && value.type === "PLAIN";
    if (isPlain && (value.value === "exists" || value.value === "absent"))
      return this.#yaml.fail(
        value,
        `${name} is compared with the text ${value.value}: did you mean { ${value.value}: true }? For the text, use quotes`,
      );
    return scalar && { kind: "equals", values: [scalar.value] };
  }

  /** Reads a value to compare with. A glob would be compared as a text, and never be equal. */
  #compared(member: Member): { value: Scalar } | undefined {
    const scalar = this.#scalar(member);
    if (typeof scalar?.value === "string" && isGlob(scalar.value))
      this.#yaml.failNew(
        member.value!,
        `${member.name} is compared with the text ${shown(scalar.value)}, in which * is an ordinary character: for a glob, write { like: ${shown(scalar.value)} }`,
      );
    return scalar;
  }

  #action(member: Member): Action | undefined {
    const yaml = this.#yaml;
    const kind = member.name as (typeof actionMembers)[number];
    switch (kind) {
      case "drop":
      case "quarantine": {
        if (yaml.boolean(member) === undefined) return undefined;
        if ((member.value as { value?: unknown }).value === true) return { kind };
        return yaml.fail(member.value!, `${kind} must be true: remove the rule to switch it off`);
      }
      case "sample": {
        const share = yaml.number(member);
        if (share === undefined) return undefined;
        if (share > 0 && share < 1) return { kind, share };
        const hint = share === 0 ? ": write drop: true" : ": 0.1 keeps 10 %";
        return yaml.fail(member.value!, `sample must be between 0 and 1 (got ${share})${hint}`);
      }
      case "remove":
      case "hash":
        return { kind, paths: this.#paths(member) };
      case "keep_only":
        return { kind: "keepOnly", paths: this.#paths(member) };
      case "cut":
        return { kind, bytes: this.#map(member, (one) => this.#bytes(one)) ?? new Map() };
      case "set":
        return { kind, values: this.#map(member, (one) => this.#scalar(one)?.value) ?? new Map() };
      case "rename": {
        const event = yaml.text(member, ruleTextCharsMax);
        if (event === undefined) return undefined;
        if (!event.includes("*")) return { kind, event };
        return yaml.fail(
          member.value!,
          `rename must be the new name, without * (got ${shown(event)})`,
        );
      }
    }
  }

  #bytes(member: Member): number | undefined {
    const bytes = this.#yaml.number(member);
    if (bytes === undefined) return undefined;
    if (Number.isSafeInteger(bytes) && bytes > 0 && bytes <= cutBytesMax) return bytes;
    return this.#yaml.fail(
      member.value!,
      `${member.name} must be a whole number of bytes from 1 to ${cutBytesMax} (got ${bytes})`,
    );
  }

  /** Actions after which the rest of the rule has no effect. */
  #refuseUseless(given: readonly Member[]): void {
    const ending = given.find(({ name }) => name === "drop" || name === "quarantine");
    if (ending === undefined) return;
    for (const { name, key } of given)
      if (name !== ending.name)
        this.#yaml.fail(
          key,
          `${name} has no effect next to ${ending.name}, which ends the evaluation: remove one of them`,
        );
  }

  #schema(node: ParsedNode): EventSchema | undefined {
    const what = "a schema";
    const members = this.#yaml.map(node, { what, key: node, known: schemaMembers });
    if (members === undefined) return undefined;
    const required = ["event", "version", "properties"].map((name) => {
      const member = members.get(name);
      if (member === undefined) this.#yaml.fail(node, `a schema has no ${name}: add ${name}: …`);
      return member;
    });
    const [event, version, properties] = required;
    const mode = this.#choice(members.get("mode"), schemaModes) ?? "observe";
    const name = event && this.#yaml.text(event, ruleTextCharsMax);
    const number = version && this.#yaml.number(version);
    if (number !== undefined && !(Number.isSafeInteger(number) && number > 0))
      this.#yaml.fail(version!.value!, `version must be a whole number above 0 (got ${number})`);
    if (name !== undefined && isGlob(name))
      this.#yaml.failNew(
        event!.value!,
        `the event of a schema is an exact name, in which * is an ordinary character (got ${shown(name)}): write a schema for each event`,
      );
    const schema = properties && readPropertiesSchema(this.#yaml, properties);
    if (name === undefined || number === undefined || schema === undefined) return undefined;
    return { event: name, version: number, mode, properties: schema };
  }

  #refuseSameNames(rules: readonly Element<Rule>[], schemas: readonly Element<EventSchema>[]) {
    const names = new Set<string>();
    for (const { node, value } of rules) {
      if (names.has(value.name))
        this.#yaml.fail(
          this.#memberOf(node, "name"),
          `two rules have the name ${value.name}: rename one`,
        );
      names.add(value.name);
    }
    const events = new Set<string>();
    for (const { node, value } of schemas) {
      if (events.has(value.event))
        this.#yaml.fail(
          this.#memberOf(node, "event"),
          `two schemas are for the event ${shown(value.event)}: remove one`,
        );
      events.add(value.event);
    }
  }

  /** Refuses a file that would make one event slow. Returns whether the file is refused. */
  #refuseMuchWork(elements: readonly Element<Rule>[]): boolean {
    const found = tooManySteps(elements.map(({ value }) => value));
    if (found !== undefined) this.#yaml.fail(elements[found.slowest]!.node, found.message);
    return found !== undefined;
  }

  /** The value of a member of a rule; the rule itself if it has no such member. */
  #memberOf(rule: ParsedNode, name: string): ParsedNode {
    const found = isMap(rule) ? (rule.get(name, true) as ParsedNode | undefined) : undefined;
    return found ?? rule;
  }

  #elements<T>(
    member: Member | undefined,
    max: number,
    read: (node: ParsedNode) => T | undefined,
  ): Element<T>[] {
    if (member === undefined) return [];
    const nodes = this.#yaml.list(member.value, member.name, member.key) ?? [];
    if (nodes.length > max) {
      const message = `${member.name} has ${nodes.length} elements; the maximum is ${max}`;
      this.#yaml.fail(nodes[max]!, message);
      return [];
    }
    return nodes.flatMap((node) => {
      const value = read(node);
      return value === undefined ? [] : [{ node, value }];
    });
  }

  #members(member: Member, what: string, known: readonly string[]) {
    return this.#yaml.map(member.value, { what, key: member.key, known });
  }

  #map<T>(
    member: Member,
    read: (member: Member) => T | undefined,
  ): Map<PropertyPath, T> | undefined {
    const { name, key, value } = member;
    const members = this.#yaml.map(value, { what: name, key });
    if (members === undefined) return undefined;
    if (this.#bounded(member, [...members.keys()]) === undefined) return undefined;
    const found = new Map<PropertyPath, T>();
    for (const [path, one] of members) {
      this.#checkPath(path, one.key, name);
      const result = read(one);
      if (result !== undefined) found.set(path, result);
    }
    return found;
  }

  #paths(member: Member): PropertyPath[] {
    const texts = this.#textNodes(member) ?? [];
    const paths = new Set<string>();
    for (const { text, node } of texts) {
      this.#checkPath(text, node, member.name);
      if (paths.has(text)) this.#yaml.fail(node, `${member.name} has ${shown(text)} twice`);
      paths.add(text);
    }
    return [...paths];
  }

  #checkPath(path: string, node: ParsedNode, kind: string): void {
    const fail = (message: string) => void this.#yaml.fail(node, message);
    const split = splitPath(path);
    if (path.length > ruleTextCharsMax)
      fail(`a path has ${path.length} characters; the maximum is ${ruleTextCharsMax}`);
    else if (split?.name === "")
      fail(`${shown(path)} has an empty name: a path is email or $set.email`);
    else if (path.includes("*"))
      fail(`${shown(path)} has a *: a path is the exact name of a property`);
    else if (split === undefined) fail(whyNoPath(path));
    else if (keyProperties.includes(path))
      fail(`${path} is the project's key, which rules never see or change`);
    else if (changingKinds.includes(kind) && distinctIdProperties.includes(path))
      fail(
        `${kind} cannot change ${path}: clients send the distinct id in the properties or next to them, and rules change neither. Send another id from the client`,
      );
    else if (kind === "keep_only" && split.object !== undefined)
      fail(
        `keep_only is for properties, and never removes members of $set: name ${shown(path)} in remove to remove it`,
      );
    else if (wholeKinds.includes(kind) && effectProperties.includes(path))
      fail(whyNotWhole(path, kind));
  }

  #patterns(member: Member): string[] | undefined {
    const texts = this.#textNodes(member, { orOne: true });
    for (const { text, node } of texts ?? []) {
      const message = `${shown(text)} looks like a regular expression: in a pattern, * matches any characters, and every other character only itself`;
      if (/^\/.*\/[dgimsuvy]*$/.test(text)) this.#yaml.fail(node, message);
      else if (/^\^|^\.\*/.test(text)) this.#yaml.failNew(node, message);
    }
    return texts?.map(({ text }) => text);
  }

  #texts(member: Member): string[] | undefined {
    return this.#textNodes(member)?.map(({ text }) => text);
  }

  /** Returns the texts of a list, or with `orOne` of a list or a single text. */
  #textNodes(
    member: Member,
    { orOne = false } = {},
  ): { text: string; node: ParsedNode }[] | undefined {
    const { name, key, value } = member;
    const nodes =
      orOne && value !== null && isScalar(value) ? [value] : this.#yaml.list(value, name, key);
    if (nodes === undefined) return undefined;
    const found = this.#bounded(member, nodes)?.map((node) => {
      const text = this.#yaml.text({ name, key, value: node }, ruleTextCharsMax);
      return text === undefined ? [] : [{ text, node }];
    });
    return found?.flat();
  }

  #bounded<T>({ name, key, value }: Member, elements: readonly T[]): readonly T[] | undefined {
    const at = value ?? key;
    if (elements.length === 0) return this.#yaml.fail(at, `${name} is empty: remove it`);
    if (elements.length <= elementsMax) return elements;
    return this.#yaml.fail(
      at,
      `${name} has ${elements.length} elements; the maximum is ${elementsMax}`,
    );
  }

  #scalar(member: Member): { value: Scalar } | undefined {
    return this.#yaml.scalar(member, ruleTextCharsMax);
  }

  #boolean(member: Member | undefined): boolean | undefined {
    return member && this.#yaml.boolean(member);
  }

  #choice<T extends string>(member: Member | undefined, choices: readonly T[]): T | undefined {
    const text = member && this.#yaml.text(member, ruleTextCharsMax);
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    return this.#yaml.fail(
      member!.value!,
      `${member!.name} must be one of ${choices.join(", ")} (got ${shown(text)})`,
    );
  }
}

function whyNoPath(path: string): string {
  const isOtherEscape = path.replace(/\\[.\\]/g, "").includes("\\");
  if (isOtherEscape)
    return `${shown(path)} has a backslash: write it twice if it is in the name of the property`;
  const [, object = "", name = ""] = /^(\$set\.|\$set_once\.)?(.*)$/s.exec(path)!;
  const escaped = name.replace(/\\[.\\]|\./g, (found) => (found === "." ? "\\." : found));
  return `nested properties are not supported; for the property whose name has a dot, write ${object}${escaped}`;
}

/** Why an action cannot replace the whole value of a property with an effect. */
function whyNotWhole(path: string, kind: string): string {
  const what = `${path} changes people or groups, so ${kind} cannot replace its value`;
  return splitPath(`${path}.a`)?.object === undefined
    ? `${what}. Its members have no path: name ${path} in remove to remove it`
    : `${what}: name one of its members, such as ${path}.email`;
}

interface Element<T> {
  readonly node: ParsedNode;
  readonly value: T;
}
