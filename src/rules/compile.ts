// Compiles the rules of a project into tables that the gateway reads for each event. The members that
// the rules name get numbered paths.

import { Buffer } from "node:buffer";
import {
  type ConstantText,
  MemberLevel,
  type MemberName,
  MemberNames,
  type SetText,
} from "../records/found-members.ts";
import { type ItemView, isString, typeAt } from "../records/item-view.ts";
import { NameTable } from "../records/name-table.ts";
import { SchemaCheckWriter } from "../records/schema-checks.ts";
import { FieldShift, Row, TokenType } from "../records/table.ts";
import { stringBeginning } from "../records/token-beginning.ts";
import { AddressRule, type SaltOf } from "./address.ts";
import {
  type CompiledAction,
  type CompiledRule,
  lastTopPath,
  type PropertyTest,
  RuleEffect,
  storableText,
  topProperties,
} from "./compiled-rule.ts";
import { type CookielessContext, CookielessRule, visitorPaths } from "./cookieless.ts";
import { CompiledSchema, SchemaResult } from "./event-schema.ts";
import { ValueHash } from "./hashing.ts";
import { typeOfText } from "./item-edits.ts";
import { NativeEdits } from "./native-edits.ts";
import { type Plan, Plans } from "./plans.ts";
import {
  type Action,
  type EventSchema,
  effectProperties,
  type Match,
  type PropertyMatch,
  type PropertyPath,
  type Rule,
  type RulesFile,
  type Scalar,
  splitPath,
} from "./rules-file.ts";
import { estimateOf } from "./rules-work.ts";
import { TextPatterns } from "./text-patterns.ts";
import { UrlCutter, urlProperties } from "./url-cutter.ts";

export interface RulesContext {
  /** The version of the rules, a positive integer. Changed records have it in `rules`. */
  readonly version: number;
  /** The key of the HMAC of hash rules. */
  readonly secret: Uint8Array;
  /**
   * Returns the salt of a day. Without a salt, `ip: hash` stores no address, and `cookieless` no
   * cookieless event.
   */
  readonly saltOf?: SaltOf;
  /** Required for `cookieless`. */
  readonly cookieless?: CookielessContext | undefined;
  /** Default: counters that begin with 0. */
  readonly counters?: RulesCounters;
}

/** Provides the counters of events, so that a new version of the rules continues to count. */
export interface RulesCounters {
  ofRule(rule: Rule): Float64Array;
  ofSchema(schema: EventSchema): Float64Array;
}

const newCounters: RulesCounters = {
  ofRule: () => new Float64Array(Object.keys(RuleEffect).length),
  ofSchema: () => new Float64Array(Object.keys(SchemaResult).length),
};

/**
 * Maximum bytes of a name or value that patterns read. The rest is ignored. Event names of at most
 * 200 characters, and the longest texts of rules, are shorter.
 */
export const matchedBytesMax = 1_280;

/** Properties that Penstock reads. `keep_only` never removes them. */
export const readProperties: readonly string[] = [
  ...effectProperties,
  "$group_type",
  "$group_key",
  "alias",
  "distinct_id",
  "$distinct_id",
  "$anon_distinct_id",
  "$process_person_profile",
  "$ignore_sent_at",
  "$survey_id",
  "$current_url",
  "$screen_name",
  "$exception_list",
  "$ai_trace_id",
  "$lib",
  "$lib_version",
];

/** Number of texts that are compared one by one, which is faster than reading the value. */
const comparedTextsMax = 8;

/** The path of no member. */
const noPath = 0;

/** The sent names of SDKs that have another name in `$lib`. */
const namesInLib: ReadonlyMap<string, string> = new Map([
  ["posthog-js", "web"],
  ["posthog-js-lite", "js"],
]);

export function compileRules(file: RulesFile, context: RulesContext): CompiledRules {
  return new CompiledRules(file, context);
}

export class CompiledRules {
  readonly version: number;
  readonly rules: readonly CompiledRule[];
  readonly names: MemberNames;
  /** JSON texts that the rules write into events. */
  readonly texts: Buffer;
  readonly commaText: ConstantText;
  readonly nullText: ConstantText;
  readonly hash: ValueHash;
  readonly address: AddressRule | undefined;
  readonly cookieless: CookielessRule | undefined;
  readonly urls: UrlCutter | undefined;
  /** The paths of the properties whose URLs are cut. */
  readonly urlPaths: readonly number[];
  readonly schemas: readonly CompiledSchema[];
  /**
   * The schema whose checks begin at an offset. The table of names does not always have the schema of
   * a row: an item that is rewritten earlier can replace the row's name, and its plan.
   */
  readonly schemaAt: ReadonlyMap<number, CompiledSchema>;
  readonly #texts = new ConstantTexts();
  readonly #paths = new Paths(this.#texts);
  /** These paths are 0 if no rule reads them. */
  readonly libPath: number;
  readonly libVersionPath: number;
  readonly userAgentPath: number;
  /** Whether several conditions read the value of the same path. */
  readonly readsAgain: boolean;
  /**
   * Members that rules change in part. If the client sent such a member with a wrong type, the
   * record does not keep its value in `replaced`, because the rules cannot read it.
   */
  readonly partlyChanged: ReadonlySet<string>;
  readonly #plans: Plans;
  /** The plans of names that events have had. */
  readonly namedPlans = new NameTable<Plan>();
  /** The plans of names that rules give to events. */
  readonly #renamedPlans = new Map<string, Plan>();
  readonly #work: ReturnType<typeof estimateOf>;

  constructor(file: RulesFile, context: RulesContext) {
    const { privacy } = file;
    const { counters = newCounters } = context;
    const paths = this.#paths;
    this.version = context.version;
    this.hash = new ValueHash(context.secret);
    this.address = privacy.ip === "keep" ? undefined : new AddressRule(privacy.ip, context.saltOf);
    const cutsUrls = privacy.cutQuery.length > 0 || privacy.cutFragment;
    this.urls = cutsUrls ? new UrlCutter(privacy) : undefined;
    for (const name of topProperties) paths.of(name);
    const hasMatch = (name: keyof Match): boolean =>
      file.rules.some(({ match }) => match[name] !== undefined);
    this.libPath = hasMatch("sdk") ? paths.of("$lib") : noPath;
    this.libVersionPath = hasMatch("sdkVersion") ? paths.of("$lib_version") : noPath;
    this.userAgentPath = hasMatch("bot") ? paths.of("$raw_user_agent") : noPath;
    this.cookieless = privacy.cookieless
      ? cookielessRule(context, (path) => paths.of(path))
      : undefined;
    this.rules = file.rules.map((rule, index) =>
      this.#compiled(rule, index, counters.ofRule(rule)),
    );
    const read = this.rules.flatMap((rule) => this.#readBy(rule));
    this.readsAgain = new Set(read).size < read.length;
    const actions = this.rules.flatMap((rule) => rule.actions);
    const keepsOnly = actions.some(({ kind }) => kind === "keepOnly");
    const checks = new SchemaCheckWriter();
    const pathOf = (name: string): number => paths.ofName(name);
    this.schemas = file.schemas.map(
      (schema) => new CompiledSchema(schema, { pathOf, checks, counts: counters.ofSchema(schema) }),
    );
    this.schemaAt = new Map(this.schemas.map((schema) => [schema.checks, schema]));
    // Otherwise all properties are listed only for the events with such a schema.
    const readsAllOfRenamed =
      actions.some(({ kind }) => kind === "rename") &&
      this.schemas.some((schema) => schema.readsAll);
    this.urlPaths = cutsUrls ? urlProperties.map((path) => paths.of(path)) : [];
    const texts = this.#texts;
    this.commaText = texts.add(",");
    this.nullText = texts.add("null");
    this.texts = texts.concat();
    const edits = new NativeEdits(this.rules, paths.names);
    this.names = new MemberNames(paths.names, {
      texts: this.texts,
      listsAll: keepsOnly || readsAllOfRenamed,
      listsContainers: privacy.cookieless || actions.some(({ kind }) => kind === "set"),
      edits: edits.ofPaths,
      checks: checks.words,
    });
    this.#plans = new Plans(this.rules, {
      cutsUrls,
      isCookieless: privacy.cookieless,
      edits,
      schemas: this.schemas,
    });
    this.partlyChanged = partlyChangedBy(file);
    const rewrites =
      cutsUrls ||
      privacy.cookieless ||
      this.schemas.length > 0 ||
      this.rules.some((rule) => rule.readsMembers || rule.renames);
    this.#work = estimateOf(file, rewrites);
  }

  /** Whether the rules do anything with an event, beyond its address. */
  get readsEvents(): boolean {
    const { rules, urls, cookieless, schemas } = this;
    return rules.length > 0 || schemas.length > 0 || (urls ?? cookieless) !== undefined;
  }

  /** Whether the rules read the User-Agent of a request. */
  get readsUserAgent(): boolean {
    return this.cookieless !== undefined || this.rules.some(({ bot }) => bot !== undefined);
  }

  /** The names of all paths. The path of the first name is 1. */
  get pathNames(): readonly MemberName[] {
    return this.#paths.names;
  }

  /** Estimates the work for events, in bytes that could be copied in the same time. */
  workOf(bytes: number, events: number): number {
    return events * this.#work.perEvent + bytes * this.#work.perByte;
  }

  /** Returns the plan for the item's event name; undefined if the item has no name. */
  planOf(item: ItemView, isEngage: boolean): Plan | undefined {
    const { body, table, row } = item;
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
    const [start, end] = [table[row + Row.EventStart]!, table[row + Row.EventEnd]!];
    if (isString(type))
      return this.#plans.ofName(stringBeginning(body, start, end, matchedBytesMax));
    const isNameless = type === TokenType.Absent || type === TokenType.Null;
    return isEngage && isNameless ? this.#plans.ofName("$identify") : undefined;
  }

  /** Returns the plan for a name that a rule gives to events. */
  planOfNewName(name: string): Plan {
    const known = this.#renamedPlans.get(name);
    if (known !== undefined) return known;
    const plan = this.#plans.ofName(name);
    this.#renamedPlans.set(name, plan);
    return plan;
  }

  #compiled(rule: Rule, index: number, counts: Float64Array): CompiledRule {
    const { name, mode, match } = rule;
    const { event: _, ...conditions } = match;
    const isUnconditional = Object.values(conditions).every((one) => one === undefined);
    const actions = rule.actions.map((action) => this.#action(action));
    return {
      index,
      name,
      mode,
      lane: match.lane,
      bot: match.bot,
      counts,
      event: patternsOf(match.event),
      sdk: patternsOf(match.sdk?.flatMap(namesOfSdk)),
      sdkVersion: patternsOf(match.sdkVersion),
      properties: this.#testsOf(match),
      isUnconditional,
      actions,
      renames: actions.some(({ kind }) => kind === "rename"),
      readsMembers: readsMembers(rule),
      isIdleWithoutMembers: actions.every(isActionIdleWithoutMembers),
    };
  }

  /** Returns the paths of the values that the conditions of a rule read. */
  #readBy({ sdk, sdkVersion, bot, properties }: CompiledRule): number[] {
    return [
      ...(sdk === undefined ? [] : [this.libPath]),
      ...(sdkVersion === undefined ? [] : [this.libVersionPath]),
      ...(bot === undefined ? [] : [this.userAgentPath]),
      ...properties.flatMap(({ path, match }) =>
        match.kind === "equals" || match.kind === "like" ? [path] : [],
      ),
    ];
  }

  #testsOf({ properties }: Match): PropertyTest[] {
    return [...(properties ?? [])].map(([path, match]) => ({
      path: this.#paths.of(path),
      match: this.#testOf(match),
    }));
  }

  #testOf(match: PropertyMatch): PropertyTest["match"] {
    if (match.kind === "equals") return this.#valuesOf(match.values);
    if (match.kind !== "like") return match;
    return { kind: "like", patterns: new TextPatterns(match.patterns) };
  }

  #valuesOf(values: readonly Scalar[]): PropertyTest["match"] {
    const texts = values.filter((value) => typeof value === "string");
    return {
      kind: "equals",
      values: new Set(values),
      texts:
        texts.length <= comparedTextsMax
          ? texts.map((text) => this.#texts.add(JSON.stringify(text)))
          : undefined,
    };
  }

  #action(action: Rule["actions"][number]): CompiledAction {
    const pathOf = (path: PropertyPath): number => this.#paths.of(path);
    switch (action.kind) {
      case "sample":
        return { kind: "sample", limit: action.share * 2 ** 32 };
      case "remove":
      case "hash":
        return { kind: action.kind, paths: action.paths.map(pathOf) };
      case "keepOnly":
        return {
          kind: "keepOnly",
          paths: new Set([...readProperties, ...action.paths].map(pathOf)),
        };
      case "set":
        return {
          kind: "set",
          members: [...action.values].map(([path, value]) => this.#setMember(pathOf(path), value)),
        };
      case "cut":
        return {
          kind: "cut",
          members: [...action.bytes].map(([path, bytesMax]) => ({ path: pathOf(path), bytesMax })),
        };
      case "rename":
        return { kind: "rename", event: storableText(action.event) };
      default:
        return action;
    }
  }

  #setMember(path: number, value: Scalar): { path: number; text: SetText } {
    const { name, text } = this.#paths.names[path - 1]!;
    const json = Buffer.from(scalarText(value));
    const { start: nameStart, end } = this.#texts.add(`${JSON.stringify(name)}:${json},`);
    const start = nameStart + text.end - text.start;
    const type = typeOfText(json, 0, json.length);
    return { path, text: { nameStart, start, end: end - 1, type } };
  }
}

function cookielessRule(
  { cookieless, saltOf = () => undefined }: RulesContext,
  pathOf: (path: PropertyPath) => number,
): CookielessRule {
  if (cookieless === undefined) throw new Error("cookieless rules need their context");
  return new CookielessRule(cookieless, saltOf, pathOf);
}

/** Returns the names of the members that the enforced rules or the privacy section change in part. */
function partlyChangedBy({ privacy, rules }: RulesFile): ReadonlySet<string> {
  const enforced = rules.filter(({ mode }) => mode === "enforce").flatMap(({ actions }) => actions);
  const paths = enforced.flatMap((action): readonly PropertyPath[] => {
    switch (action.kind) {
      case "remove":
      case "hash":
        return action.paths;
      case "cut":
        return [...action.bytes.keys()];
      case "keepOnly":
        return effectProperties.map((name) => `${name}.`);
      default:
        return [];
    }
  });
  const cutsUrls = privacy.cutQuery.length > 0 || privacy.cutFragment;
  return new Set(
    [
      ...paths,
      ...(cutsUrls ? urlProperties : []),
      ...(privacy.cookieless ? [...visitorPaths, "options."] : []),
    ]
      .filter((path) => path.includes("."))
      .map((path) => path.slice(0, path.indexOf("."))),
  );
}

function patternsOf(patterns: readonly string[] | undefined): TextPatterns | undefined {
  return patterns === undefined ? undefined : new TextPatterns(patterns);
}

function namesOfSdk(name: string): string[] {
  const inLib = namesInLib.get(name);
  return inLib === undefined ? [name] : [name, inLib];
}

function scalarText(value: Scalar): string {
  return JSON.stringify(typeof value === "string" ? storableText(value) : value);
}

const actionsWithoutMembers: ReadonlySet<Action["kind"]> = new Set([
  "drop",
  "sample",
  "quarantine",
  "rename",
]);

function readsMembers({ match, actions }: Rule): boolean {
  return (
    match.bot !== undefined ||
    match.sdk !== undefined ||
    match.sdkVersion !== undefined ||
    match.properties !== undefined ||
    actions.some(({ kind }) => !actionsWithoutMembers.has(kind))
  );
}

function isActionIdleWithoutMembers(action: CompiledAction): boolean {
  if (action.kind === "remove") return action.paths.every((path) => path > lastTopPath);
  return action.kind === "hash" || action.kind === "cut" || action.kind === "keepOnly";
}

/** The objects in `properties` whose members have paths, and the levels of these. */
const innerLevels: ReadonlyMap<string, number> = new Map([
  ["$set", MemberLevel.Set],
  ["$set_once", MemberLevel.SetOnce],
]);

/** Numbers the paths of the rules. */
class Paths {
  readonly #numbers = new Map<string, number>();
  readonly names: MemberName[] = [];
  readonly #texts: ConstantTexts;

  constructor(texts: ConstantTexts) {
    this.#texts = texts;
  }

  of(path: PropertyPath): number {
    const split = splitPath(path);
    if (split === undefined) throw new Error(`${path} is not a path of a rule`);
    const { object, name } = split;
    return this.#numberOf(innerLevels.get(object ?? "") ?? MemberLevel.Properties, name);
  }

  /** Returns the number of a member of `properties` by its name. */
  ofName(name: string): number {
    return this.#numberOf(MemberLevel.Properties, name);
  }

  #numberOf(level: number, sent: string): number {
    const name = storableText(sent);
    const key = `${level}.${name}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.names.push({ level, name, text: this.#texts.add(`${JSON.stringify(name)}:`) });
    this.#numbers.set(key, this.names.length);
    return this.names.length;
  }
}

class ConstantTexts {
  readonly #known = new Map<string, ConstantText>();
  #bytes = 0;

  /** Returns the same part for equal texts. */
  add(text: string): ConstantText {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const start = this.#bytes;
    this.#bytes += Buffer.byteLength(text);
    const added = { start, end: this.#bytes };
    this.#known.set(text, added);
    return added;
  }

  concat(): Buffer {
    return Buffer.from([...this.#known.keys()].join(""));
  }
}
