// Applies the compiled rules of a project to its events: decides whether an event is stored, and
// writes the changed text of the event. Everything is synchronous, and the objects are reused.

import { Buffer } from "node:buffer";
import type { Lane } from "../platform/base/lane.ts";
import { distinctIdText } from "../records/distinct-id.ts";
import type { ChangeFunctions } from "../records/item-changes.ts";
import {
  type ItemView,
  isNothing,
  isObjectOrNothing,
  isString,
  typeAt,
} from "../records/item-view.ts";
import { isEmptyArray } from "../records/property-check.ts";
import { createRowTasks, editingRulesMax, listRow, RowTasks } from "../records/row-tasks.ts";
import { SampleHash, sampleHash } from "../records/sample-hash.ts";
import { FieldShift, Header, type MemberFinder, Row, TokenType } from "../records/table.ts";
import { stringBeginning } from "../records/token-beginning.ts";
import { isKnownBot } from "./bots.ts";
import { type CompiledRules, matchedBytesMax } from "./compile.ts";
import {
  type CompiledAction,
  type CompiledRule,
  effectOf,
  type PropertyTest,
  RuleEffect,
} from "./compiled-rule.ts";
import {
  type CookielessMembers,
  type CookielessRule,
  type Visitor,
  visitorTextBytesMax,
} from "./cookieless.ts";
import { EventMembers } from "./event-members.ts";
import type { CompiledSchema, SchemaCheck } from "./event-schema.ts";
import { ItemChanges, typeOfText } from "./item-edits.ts";
import { ruleTextCharsMax } from "./limits.ts";
import { MemberActions } from "./member-actions.ts";
import type { Plan } from "./plans.ts";
import type { Scalar } from "./rules-file.ts";
import type { TextPatterns } from "./text-patterns.ts";

/** The values are not those of TaskKind, so that an outcome can replace the kind of a task. */
export const Outcome = {
  /** The event is stored as it is. */
  Same: 16,
  /** The event is stored with another text, which `write` writes. */
  Changed: 17,
  /** A rule drops the event, or its distinct id is not in the sample. */
  Filtered: 18,
  Quarantined: 19,
  /** The event is cookieless and cannot have an id. `refusal` has the reason. */
  NoCookielessId: 20,
  /** The event is cookieless, and the salt of its day is not known now. */
  NoSalt: 21,
} as const;
export type Outcome = (typeof Outcome)[keyof typeof Outcome];

/** The facts about a request that rules read. */
export interface RequestOfRules {
  readonly lane: Lane;
  /** Whether an object without a name counts as a `$identify`. */
  readonly isEngage: boolean;
  /** Whether the User-Agent of the request is a known bot. */
  readonly isBot: boolean;
  /** Required if the rules have `cookieless`. */
  readonly visitor?: Visitor | undefined;
}

export class RuleApplier {
  readonly #changes = new ItemChanges();
  readonly #changeItems: ChangeFunctions["changeItems"];
  readonly #members: EventMembers;
  readonly #visitorTasks = createRowTasks(1);
  readonly #actions: MemberActions;
  #rules!: CompiledRules;
  #request!: RequestOfRules;
  #item!: ItemView;
  /**
   * The values of the event that rules have read, by their place, if several conditions are about
   * the same value. Converting it takes longer than comparing it.
   */
  readonly #scalars = new Map<number, Scalar>();
  /** The name that a rule has given to the event. */
  #name: string | undefined = undefined;
  #hasChanges = false;
  /** The distinct id of the last event, if it is cookieless; else undefined. */
  cookielessId: string | undefined = undefined;
  /** The User-Agent of a cookieless event, which has been removed from its members. */
  #visitorAgent = "";
  /** Why the last event cannot have an id. */
  refusal = "";
  readonly #cookielessMembers: CookielessMembers = {
    textOf: (path) => {
      const entry = this.#members.entryOf(path);
      const value = entry === 0 ? "" : this.#scalarOf(entry, visitorTextBytesMax);
      return typeof value === "string" ? value : "";
    },
    has: (path) => this.#members.has(path),
    set: (path, text) => {
      const start = this.#changes.addText(text);
      this.#actions.set(path, { start, end: this.#changes.textsEnd }, false);
    },
    remove: (path) => this.#members.remove(path),
  };
  /** The hash of the event's distinct id, if a rule has sampled the event. */
  #idHash: number | undefined = undefined;
  /** The rule that filtered or quarantined the last event. */
  rule: CompiledRule | undefined = undefined;
  /** The schema of the event's name after the rules. */
  #schema: CompiledSchema | undefined = undefined;
  /**
   * What the schema has found in the last event; undefined if it is not stored, has no schema, or
   * has properties that the guards drop.
   */
  check: SchemaCheck | undefined = undefined;

  constructor({ changeItems }: ChangeFunctions) {
    this.#changeItems = changeItems;
    this.#members = new EventMembers(this.#changes);
    this.#actions = new MemberActions(this.#members, this.#changes);
  }

  /** Begins with the items of a table. Forgets the changes of others. */
  begin(rules: CompiledRules, request: RequestOfRules): void {
    this.#rules = rules;
    this.#request = request;
    this.#members.begin(rules);
    this.#actions.begin(rules);
    this.#changes.begin(rules.texts);
    this.#changes.clear();
  }

  /**
   * Finds the members of rows with such a task, in one call of the addon, and edits those of rows to
   * edit. The body is the last one that the scanner has scanned. Then call `apply` for the other
   * rows, in ascending order.
   */
  find(scanner: MemberFinder, body: Buffer, tasks: Uint32Array): void {
    this.#members.find(scanner, body, tasks);
    if (tasks[RowTasks.ChangedBytes] === 0) return;
    const { rules } = this.#rules;
    const count = Math.min(rules.length, editingRulesMax);
    for (let index = 0; index < count; index++)
      rules[index]!.counts[RuleEffect.changed]! += tasks[RowTasks.RuleChanges + index]!;
  }

  /**
   * Applies the rules of the plan to a plain item. `row` is the index of its row. `hasMembers`:
   * whether its members were found.
   */
  apply(item: ItemView, plan: Plan, row: number, hasMembers: boolean): Outcome {
    this.#begin(item);
    this.#schema = plan.schema;
    if (hasMembers) {
      const { cookieless, urls } = this.#rules;
      this.#members.open(item, row);
      if (cookieless !== undefined && this.#isTruthy(cookieless.flagPath)) {
        const outcome = this.#setCookielessIds(cookieless);
        if (outcome !== Outcome.Changed) return outcome;
      }
      if (urls !== undefined && this.#actions.cutUrls(urls)) this.#hasChanges = true;
    } else {
      this.#members.openNone(item);
    }
    const outcome = this.#applyRules(plan);
    if (outcome !== Outcome.Same) return outcome;
    const edited = this.#hasChanges ? this.#edit() : Outcome.Same;
    const schema = this.#schema;
    if (schema !== undefined && hasReadableProperties(item))
      this.check = this.#check(schema, plan.schema);
    return edited;
  }

  #begin(item: ItemView): void {
    this.#item = item;
    this.#name = undefined;
    this.#hasChanges = false;
    this.#idHash = undefined;
    this.rule = undefined;
    this.check = undefined;
    this.cookielessId = undefined;
    this.#visitorAgent = "";
    if (this.#scalars.size > 0) this.#scalars.clear();
  }

  /**
   * Removes from a cookieless event only the values of its visitor, and sets its ids if it can have
   * them. Returns the outcome and whether the event is cookieless. The outcome is NoSalt if the ids
   * are not known now, else Changed or Same. The scanner is that of `find`.
   */
  removeVisitor(
    item: ItemView,
    scanner: MemberFinder,
  ): { readonly outcome: Outcome; readonly isCookieless: boolean } {
    const { cookieless } = this.#rules;
    const row = (item.row - Header.Words) / Row.Words;
    this.#begin(item);
    const tasks = this.#visitorTasks;
    tasks[RowTasks.First] = row;
    tasks[RowTasks.Count] = 1;
    listRow(tasks, 0);
    this.find(scanner, item.body, tasks);
    this.#members.open(item, row);
    if (cookieless === undefined || !this.#isTruthy(cookieless.flagPath))
      return { outcome: Outcome.Same, isCookieless: false };
    const outcome = this.#setCookielessIds(cookieless);
    if (outcome === Outcome.NoSalt) return { outcome, isCookieless: true };
    if (outcome === Outcome.NoCookielessId) cookieless.removeVisitor(this.#cookielessMembers);
    return { outcome: this.#edit(), isCookieless: true };
  }

  #setCookielessIds(rule: CookielessRule): Outcome {
    const { visitor } = this.#request;
    if (visitor === undefined) throw new Error("cookieless rules need the visitor of a request");
    const members = this.#cookielessMembers;
    const { table, row } = this.#item;
    const isNamed = isString(typeAt(table[row + Row.FieldTypes]!, FieldShift.Event));
    const event = isNamed || this.#request.isEngage ? this.#sentName() : "";
    const result = rule.idsOf({ item: this.#item, event }, members, visitor);
    if (!("ids" in result)) {
      if (result.refusal === undefined) return Outcome.NoSalt;
      this.refusal = result.refusal;
      return Outcome.NoCookielessId;
    }
    this.#visitorAgent = members.textOf(this.#rules.userAgentPath);
    rule.setIds(members, result.ids);
    this.cookielessId = result.ids.distinctId;
    this.#hasChanges = true;
    return Outcome.Changed;
  }

  /** Checks the event with the changes of the rules. */
  #check(schema: CompiledSchema, ofSentName: CompiledSchema | undefined): SchemaCheck {
    const members = this.#members;
    if (schema !== ofSentName) members.changeSchema();
    if (this.#hasChanges) members.writeChangedObjects();
    else if (members.isValid) return schema.valid;
    return schema.check(members);
  }

  /** Number of events since `begin` that the rules have changed. */
  get changeCount(): number {
    return this.#changes.count;
  }

  /** Maximum number of bytes of all changed texts. */
  get bytesMax(): number {
    return this.#changes.bytesMax;
  }

  /**
   * Writes the texts of all changed events to the target, with brackets around each, and their rows
   * to `targetTable`. Row.MoreTypes of a row is 0 if the text must be scanned.
   */
  write(body: Buffer, table: Uint32Array, target: Buffer, targetTable: Uint32Array): void {
    const { words, texts } = this.#changes;
    const { secret } = this.#rules.hash;
    this.#changeItems(body, table, words, texts, secret, target, targetTable);
  }

  #edit(): Outcome {
    const { table, row } = this.#item;
    const changes = this.#changes;
    changes.open(this.#item);
    const name = this.#name === undefined ? undefined : JSON.stringify(this.#name);
    const isNameless = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event) === TokenType.Absent;
    if (name !== undefined && !isNameless) {
      const text = changes.addText(name);
      const end = changes.textsEnd;
      changes.replace(table[row + Row.EventStart]!, table[row + Row.EventEnd]!, text, end);
      changes.setFieldType(FieldShift.Event, typeOfText(changes.texts, text, end));
    }
    this.#members.edit(isNameless ? name : undefined);
    if (this.cookielessId !== undefined) this.#editCookieless(this.cookielessId);
    return changes.close() ? Outcome.Changed : Outcome.Same;
  }

  /** Edits the members of a cookieless event that are next to its properties. */
  #editCookieless(id: string): void {
    const { table, row } = this.#item;
    const changes = this.#changes;
    changes.scanText();
    if (isNothing(typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId))) return;
    const text = changes.addText(`"${id}"`);
    const [start, end] = [table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!];
    changes.replace(start, end, text, changes.textsEnd);
  }

  #applyRules(plan: Plan): Outcome {
    let { rules } = plan;
    for (let at = 0; at < rules.length; at++) {
      const rule = rules[at]!;
      if (!rule.isUnconditional && !this.#matches(rule)) continue;
      const isObserved = rule.mode === "observe";
      let changes = false;
      for (const action of rule.actions) {
        const outcome = this.#act(action, isObserved);
        if (outcome === Outcome.Same) continue;
        changes = outcome === Outcome.Changed;
        if (changes) continue;
        rule.counts[RuleEffect[effectOf(action.kind)]]!++;
        // The actions that end the evaluation are the first ones of a rule.
        if (isObserved) break;
        this.rule = rule;
        return outcome;
      }
      if (changes) {
        rule.counts[RuleEffect.changed]!++;
        if (!isObserved) this.#hasChanges = true;
      }
      if (this.#name !== undefined && !isObserved && rule.renames) {
        const plan = this.#rules.planOfNewName(this.#name);
        this.#schema = plan.schema;
        rules = plan.rules;
        at = -1;
        while (at + 1 < rules.length && rules[at + 1]!.index <= rule.index) at++;
      }
    }
    return Outcome.Same;
  }

  #matches(rule: CompiledRule): boolean {
    if (rule.lane !== undefined && rule.lane !== this.#request.lane) return false;
    const rules = this.#rules;
    if (rule.sdk !== undefined && !this.#isLike(rules.libPath, rule.sdk)) return false;
    if (rule.sdkVersion !== undefined && !this.#isLike(rules.libVersionPath, rule.sdkVersion))
      return false;
    for (const test of rule.properties) if (!this.#passes(test)) return false;
    return rule.bot === undefined || rule.bot === this.#isBot();
  }

  #passes({ path, match }: PropertyTest): boolean {
    switch (match.kind) {
      case "exists":
        return this.#members.has(path);
      case "absent":
        return !this.#members.has(path);
      case "like":
        return this.#isLike(path, match.patterns);
      case "equals": {
        const members = this.#members;
        const entry = members.entryOf(path);
        // No value of a condition is as long.
        if (entry === 0 || members.endOf(entry) - members.startOf(entry) > comparedBytesMax)
          return false;
        if (match.texts !== undefined && members.typeOf(entry) === TokenType.PlainString) {
          for (const text of match.texts) if (this.#actions.isText(entry, text)) return true;
          return false;
        }
        const value = this.#scalarAt(path);
        return value !== undefined && match.values.has(value);
      }
    }
  }

  #isLike(path: number, patterns: TextPatterns): boolean {
    const text = this.#scalarAt(path);
    return typeof text === "string" && patterns.matches(text);
  }

  #isBot(): boolean {
    const agent = this.#visitorAgent || this.#scalarAt(this.#rules.userAgentPath);
    return typeof agent === "string" && agent !== "" ? isKnownBot(agent) : this.#request.isBot;
  }

  #isTruthy(path: number): boolean {
    const value = this.#scalarAt(path);
    return value === undefined ? this.#members.has(path) : Boolean(value);
  }

  /** Returns the value of a path, or the beginning of a long text; undefined for an object. */
  #scalarAt(path: number): Scalar | undefined {
    const members = this.#members;
    const entry = members.entryOf(path);
    if (entry === 0) return undefined;
    if (!this.#rules.readsAgain) return this.#scalarOf(entry, matchedBytesMax);
    const start = members.startOf(entry);
    // Changed values are in another buffer than sent ones.
    const place = members.isSent(entry) ? start : -1 - start;
    const known = this.#scalars.get(place);
    if (known !== undefined) return known;
    const value = this.#scalarOf(entry, matchedBytesMax);
    if (value !== undefined) this.#scalars.set(place, value);
    return value;
  }

  #scalarOf(entry: number, bytesMax: number): Scalar | undefined {
    const members = this.#members;
    const body = members.bodyOf(entry);
    switch (members.typeOf(entry)) {
      case TokenType.PlainString:
      case TokenType.EscapedString:
        return stringBeginning(body, members.startOf(entry), members.endOf(entry), bytesMax);
      case TokenType.EmptyString:
        return "";
      case TokenType.Number:
        return Number(body.toString("latin1", members.startOf(entry), members.endOf(entry)));
      case TokenType.True:
        return true;
      case TokenType.False:
        return false;
      case TokenType.Null:
        return null;
      default:
        return undefined;
    }
  }

  /** Applies an action, or, if observed, only determines its effect. */
  #act(action: CompiledAction, isObserved: boolean): Outcome {
    switch (action.kind) {
      case "drop":
        return Outcome.Filtered;
      case "quarantine":
        return Outcome.Quarantined;
      case "sample":
        return this.#isInSample(action.limit) ? Outcome.Same : Outcome.Filtered;
      case "rename":
        return this.#rename(action.event, isObserved);
      default:
        return this.#actions.apply(action, isObserved) ? Outcome.Changed : Outcome.Same;
    }
  }

  #rename(event: string, isObserved: boolean): Outcome {
    if ((this.#name ?? this.#sentName()) === event) return Outcome.Same;
    if (!isObserved) this.#name = event;
    return Outcome.Changed;
  }

  #sentName(): string {
    const { body, table, row } = this.#item;
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
    if (!isString(type)) return "$identify";
    return stringBeginning(
      body,
      table[row + Row.EventStart]!,
      table[row + Row.EventEnd]!,
      matchedBytesMax,
    );
  }

  /** Hashes the distinct id once for all rules, which never change it. */
  #isInSample(limit: number): boolean {
    this.#idHash ??=
      this.cookielessId === undefined ? hashOfId(this.#item) : hashOfText(this.cookielessId);
    return this.#idHash < limit;
  }
}

/** Returns whether the guards accept the type of the properties. */
function hasReadableProperties({ body, table, row }: ItemView): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  if (isObjectOrNothing(type)) return true;
  return isEmptyArray(body, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!);
}

/** Below the limit of each sample. */
const alwaysSampled = -1;

/** Events without a distinct id are in every sample, because the guards drop them. */
function hashOfId({ body, table, row }: ItemView): number {
  const fields = table[row + Row.FieldTypes]!;
  let type = typeAt(fields, FieldShift.DistinctId);
  let span = row + Row.DistinctIdStart;
  if (isNothing(type)) {
    type = typeAt(fields, FieldShift.PropertiesDistinctId);
    span = row + Row.PropertiesDistinctIdStart;
  }
  if (isNothing(type) || type === TokenType.EmptyString) return alwaysSampled;
  const [start, end] = [table[span]!, table[span + 1]!];
  const isShort = end - start - 2 <= SampleHash.IdBytesMax;
  if (type === TokenType.PlainString && isShort && body[start + 1]! > 0x20)
    return sampleHash(body, start + 1, end - 1);
  return hashOfText(distinctIdText(body, start, end, type).text);
}

/** Bytes of the longest text of a rule with quotes, if all its characters are escaped. */
const comparedBytesMax = 6 * ruleTextCharsMax + 2;

function hashOfText(text: string): number {
  if (text === "") return alwaysSampled;
  const bytes = Buffer.from(text);
  return sampleHash(bytes, 0, bytes.length);
}
