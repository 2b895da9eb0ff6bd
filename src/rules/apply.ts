// Applies the compiled rules of a project to its events: decides whether an event is stored, and
// writes the changed text of the event. Everything is synchronous, and the objects are reused.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { Lane } from "../platform/base/lane.ts";
import { distinctIdText } from "../records/distinct-id.ts";
import { type MemberFinder, PlaceRow } from "../records/found-members.ts";
import { Change, type ChangeFunctions } from "../records/item-changes.ts";
import {
  extraTypes,
  type ItemView,
  isNothing,
  isObjectOrNothing,
  isString,
  typeAt,
} from "../records/item-view.ts";
import { isEmptyArray } from "../records/property-check.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  Header,
  Row,
  TokenType,
} from "../records/table.ts";
import { stringBeginning } from "../records/token-beginning.ts";
import { isKnownBot } from "./bots.ts";
import {
  type CompiledAction,
  type CompiledRule,
  type CompiledRules,
  type ConstantText,
  effectOf,
  matchedBytesMax,
  type Plan,
  type PropertyTest,
  RuleEffect,
} from "./compile.ts";
import {
  type CookielessMembers,
  type CookielessRule,
  type Visitor,
  visitorTextBytesMax,
} from "./cookieless.ts";
import { EventMembers } from "./event-members.ts";
import type { CompiledSchema, SchemaCheck } from "./event-schema.ts";
import { sampleHash } from "./hashing.ts";
import { ItemChanges, typeOfText } from "./item-edits.ts";
import { ruleTextCharsMax } from "./limits.ts";
import type { Scalar } from "./rules-file.ts";
import type { TextPatterns } from "./text-patterns.ts";

export const Outcome = {
  /** The event is stored as it is. */
  Same: 0,
  /** The event is stored with another text, which `write` writes. */
  Changed: 1,
  /** A rule drops the event, or its distinct id is not in the sample. */
  Filtered: 2,
  Quarantined: 3,
  /** The event is cookieless and cannot have an id. `refusal` has the reason. */
  NoCookielessId: 4,
  /** The event is cookieless, and the salt of its day is not known now. */
  NoSalt: 5,
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
  #hasMembers = false;
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
      this.#set(path, { start, end: this.#changes.textsEnd }, false);
    },
    remove: (path) => this.#members.remove(path),
  };
  /** The start of the last hashed distinct id in the body, and its hash. */
  #sampledStart = -1;
  #sampleHash = 0;
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
  }

  /** Begins with the items of a table. Forgets the changes of others. */
  begin(rules: CompiledRules, request: RequestOfRules): void {
    this.#rules = rules;
    this.#request = request;
    this.#members.begin(rules);
    this.#changes.begin(rules.texts);
    this.#changes.clear();
  }

  /**
   * Adds a row for `find`, in ascending order: the row of a plain item whose plan needs members.
   * `removals` are those of the plan, or 0 if `apply` will be called for the row. Returns whether the
   * event is stored as it is, and valid, if the row has no entry after `find`: then `apply` need not
   * be called.
   */
  addRow(row: number, plan: Plan, removals: number): boolean {
    const { schema } = plan;
    const isIdle = this.#isIdleWithoutEntry(plan);
    const alsoListed = isIdle ? 0 : PlaceRow.AlsoListed;
    this.#members.addRow(row, removals, schema === undefined ? 0 : alsoListed + schema.checks);
    return isIdle;
  }

  #isIdleWithoutEntry({ rules, schema, isIdleWithoutMembers }: Plan): boolean {
    if (schema === undefined) return isIdleWithoutMembers;
    return rules.length === 0 && (this.#rules.cookieless ?? this.#rules.urls) === undefined;
  }

  /**
   * Finds the members of the added rows in one call of the addon. The body is the last one that the
   * scanner has scanned. Then call `nextCut` until it returns -1, and then `apply` for the other rows
   * in the order of `addRow`.
   */
  find(scanner: MemberFinder, body: Buffer): void {
    this.#members.find(scanner, body);
  }

  /** Returns the next row that the removals of its plan have changed, or -1. */
  nextCut(table: Uint32Array): number {
    const at = this.#changes.takeCut(table);
    if (at === 0) return -1;
    const { words } = this.#changes;
    const { rules } = this.#rules;
    for (let bits = words[at + Change.Rules]!; bits !== 0; bits &= bits - 1)
      rules[31 - Math.clz32(bits & -bits)]!.counts[RuleEffect.changed]!++;
    return words[at + Change.Row]!;
  }

  /** The next row with an entry, or -1. For rows without one, plans that are idle need no `apply`. */
  get nextRow(): number {
    return this.#members.nextRow;
  }

  /**
   * Applies the rules of the plan to a plain item. `row` is the index of its row. `hasMembers`:
   * whether its members were found.
   */
  apply(item: ItemView, plan: Plan, row: number, hasMembers: boolean = plan.needsMembers): Outcome {
    this.#begin(item);
    this.#hasMembers = hasMembers;
    this.#schema = plan.schema;
    if (hasMembers) {
      const { cookieless, urls } = this.#rules;
      const hasListed = this.#members.open(item, row);
      if (!hasListed && this.#isIdleWithoutEntry(plan)) {
        this.check = plan.schema?.valid;
        return Outcome.Same;
      }
      if (cookieless !== undefined && this.#isTruthy(cookieless.flagPath)) {
        const outcome = this.#setCookielessIds(cookieless);
        if (outcome !== Outcome.Changed) return outcome;
      }
      if (urls !== undefined) this.#cutUrls();
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
    this.#sampledStart = -1;
    this.rule = undefined;
    this.check = undefined;
    this.cookielessId = undefined;
    this.#visitorAgent = "";
    if (this.#scalars.size > 0) this.#scalars.clear();
  }

  /**
   * Removes from a plain item only what is not stored of a cookieless event, and sets its ids if it
   * can have them. Returns Same for any other event, and NoSalt if the ids are not known now. The
   * scanner is that of `find`.
   */
  removeVisitor(item: ItemView, scanner: MemberFinder): Outcome {
    const { cookieless } = this.#rules;
    const row = (item.row - Header.Words) / Row.Words;
    this.#begin(item);
    this.#members.addRow(row, 0, 0);
    this.find(scanner, item.body);
    this.#members.open(item, row);
    if (cookieless === undefined || !this.#isTruthy(cookieless.flagPath)) return Outcome.Same;
    const outcome = this.#setCookielessIds(cookieless);
    if (outcome === Outcome.NoSalt) return outcome;
    if (outcome === Outcome.NoCookielessId) cookieless.removeVisitor(this.#cookielessMembers);
    return this.#edit();
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
    if (!isNothing(typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId))) {
      const text = changes.addText(`"${id}"`);
      const [start, end] = [table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!];
      changes.replace(start, end, text, changes.textsEnd);
    }
    // The options of the newer protocol are in the properties, and a replay would add them again.
    if (typeAt(extraTypes(this.#item), ExtraShift.Options) === TokenType.Absent) return;
    const extra = extraOf(table, row);
    const [start, end] = [table[extra + Extra.OptionsStart]!, table[extra + Extra.OptionsEnd]!];
    const { nullText } = this.#rules;
    changes.replace(start, end, nullText.start, nullText.end);
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
      if (this.#name !== undefined && this.#isRenaming(rule, isObserved)) {
        const plan = this.#rules.planOfNewName(this.#name);
        this.#schema = plan.schema;
        rules = plan.rules;
        at = -1;
        while (at + 1 < rules.length && rules[at + 1]!.index <= rule.index) at++;
      }
    }
    return Outcome.Same;
  }

  #isRenaming(rule: CompiledRule, isObserved: boolean): boolean {
    return !isObserved && rule.renames;
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
      case "equals": {
        const entry = this.#members.entryOf(path);
        if (entry === 0) return false;
        if (match.texts !== undefined && this.#members.typeOf(entry) === TokenType.PlainString) {
          for (const text of match.texts) if (this.#isText(entry, text)) return true;
          return false;
        }
        const value = this.#isLong(path) ? undefined : this.#scalarAt(path);
        return value !== undefined && match.values.has(value);
      }
    }
  }

  /** Whether the value of a path is longer than any value of a condition. */
  #isLong(path: number): boolean {
    const members = this.#members;
    const entry = members.entryOf(path);
    return entry !== 0 && members.endOf(entry) - members.startOf(entry) > comparedBytesMax;
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
      case "keepOnly":
        return this.#members.keepOnly(action.paths, isObserved) ? Outcome.Changed : Outcome.Same;
      default:
        return this.#changeMembers(action, isObserved) ? Outcome.Changed : Outcome.Same;
    }
  }

  #changeMembers(
    action: Extract<CompiledAction, { kind: "remove" | "hash" | "set" | "cut" }>,
    isObserved: boolean,
  ): boolean {
    let changes = false;
    switch (action.kind) {
      case "remove":
        for (const path of action.paths) {
          if (!this.#members.has(path)) continue;
          changes = true;
          if (!isObserved) this.#members.remove(path);
        }
        break;
      case "hash":
        for (const path of action.paths) if (this.#hash(path, isObserved)) changes = true;
        break;
      case "set":
        for (const { path, text } of action.members)
          if (this.#set(path, text, isObserved)) changes = true;
        break;
      case "cut":
        for (const { path, bytesMax } of action.members)
          if (this.#cut(path, bytesMax, isObserved)) changes = true;
        break;
    }
    return changes;
  }

  /**
   * Hashes each member of a path, unless a rule has hashed it before. Returns whether one has a value
   * that is hashed.
   */
  #hash(path: number, isObserved: boolean): boolean {
    const members = this.#members;
    let changes = false;
    for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
      const type = members.typeOf(entry);
      if (type < TokenType.Number) continue;
      const isSent = members.isSent(entry);
      // An added value is a scalar.
      if (!isSent && type >= TokenType.Object) continue;
      if (members.isHashed(entry)) continue;
      changes = true;
      if (isObserved) continue;
      if (isSent && type !== TokenType.EscapedString) members.hash(entry);
      else {
        this.#replaceBy(entry, `"${this.#rules.hash.of(this.#textOf(entry))}"`);
        members.noteHash(entry);
      }
    }
    return changes;
  }

  /** Cuts each text of a path after the last character that ends within `bytesMax`. */
  #cut(path: number, bytesMax: number, isObserved: boolean): boolean {
    const members = this.#members;
    let changes = false;
    for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
      const type = members.typeOf(entry);
      if (!isString(type) || members.endOf(entry) - members.startOf(entry) - 2 <= bytesMax)
        continue;
      const isPlainText = type === TokenType.PlainString;
      const text = isPlainText
        ? members.bodyOf(entry)
        : Buffer.from(
            stringBeginning(
              members.bodyOf(entry),
              members.startOf(entry),
              members.endOf(entry),
              escapedBytesMax(bytesMax),
            ),
          );
      const start = isPlainText ? members.startOf(entry) + 1 : 0;
      if (!isPlainText && text.length <= bytesMax) continue;
      changes = true;
      if (isObserved) continue;
      let end = start + bytesMax;
      while (end > start && (text[end]! & 0xc0) === 0x80) end--;
      if (isPlainText) this.#replaceByBytes(entry, text.subarray(start - 1, end + 1));
      else this.#replaceBy(entry, JSON.stringify(text.toString("utf8", start, end)));
    }
    return changes;
  }

  #set(path: number, text: ConstantText, isObserved: boolean): boolean {
    const members = this.#members;
    const first = members.entryOf(path);
    if (first === 0) {
      if (!isObserved) members.add(path, text);
      return true;
    }
    let changes = false;
    for (let entry = first; entry !== 0; entry = members.entryBefore(entry)) {
      if (this.#isText(entry, text)) continue;
      changes = true;
      if (!isObserved) members.replace(entry, text);
    }
    return changes;
  }

  #replaceBy(entry: number, json: string): void {
    const start = this.#changes.addText(json);
    this.#members.replace(entry, { start, end: this.#changes.textsEnd });
  }

  /** Replaces a value by a string without escapes. The first and the last byte become quotes. */
  #replaceByBytes(entry: number, bytes: Buffer): void {
    const changes = this.#changes;
    const start = changes.addBytes(bytes);
    const end = changes.textsEnd;
    changes.texts[end - 1] = Ascii.Quote;
    this.#members.replace(entry, { start, end });
  }

  /** Returns whether the value of an entry is written like a text of the changes. */
  #isText(entry: number, { start, end }: ConstantText): boolean {
    const members = this.#members;
    const body = members.bodyOf(entry);
    const from = members.startOf(entry);
    if (members.endOf(entry) - from !== end - start) return false;
    const { texts } = this.#changes;
    for (let at = start; at < end; at++) if (texts[at] !== body[from + at - start]) return false;
    return true;
  }

  /** Returns the text of a string, and any other value as its JSON. */
  #textOf(entry: number): string {
    const members = this.#members;
    const json = members
      .bodyOf(entry)
      .toString("utf8", members.startOf(entry), members.endOf(entry));
    switch (members.typeOf(entry)) {
      case TokenType.PlainString:
      case TokenType.EmptyString:
        return json.slice(1, -1);
      case TokenType.EscapedString:
        return JSON.parse(json) as string;
      default:
        return json;
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

  #cutUrls(): void {
    const { urls, urlPaths } = this.#rules;
    const members = this.#members;
    for (const path of urlPaths)
      for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
        if (!isString(members.typeOf(entry))) continue;
        const [start, end] = [members.startOf(entry), members.endOf(entry)];
        if (!urls!.mayCut(members.bodyOf(entry), start, end)) continue;
        const url = this.#textOf(entry);
        const rest = urls!.cut(url);
        if (rest === url) continue;
        this.#hasChanges = true;
        this.#replaceBy(entry, JSON.stringify(rest));
      }
  }

  /** Events without a distinct id are in every sample, because the guards drop them. */
  #isInSample(limit: number): boolean {
    if (this.cookielessId !== undefined) {
      if (this.#sampledStart !== cookielessStart) {
        this.#sampledStart = cookielessStart;
        this.#sampleHash = hashOfText(this.cookielessId);
      }
      return this.#sampleHash < limit;
    }
    const { table, row } = this.#item;
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId);
    if (!isNothing(type)) {
      const [start, end] = [table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!];
      return this.#isSampled({ start, end, type }, limit);
    }
    if (!this.#hasMembers) return this.#isPropertiesIdInSample(limit);
    const members = this.#members;
    const { distinctIdPath, otherDistinctIdPath } = this.#rules;
    for (const path of [distinctIdPath, otherDistinctIdPath]) {
      const entry = members.entryOf(path);
      if (entry === 0 || isNothing(members.typeOf(entry))) continue;
      if (members.isSent(entry)) {
        const [start, end] = [members.startOf(entry), members.endOf(entry)];
        return this.#isSampled({ start, end, type: members.typeOf(entry) }, limit);
      }
      const text = this.#textOf(entry);
      if (text !== "") return hashOfText(text) < limit;
    }
    return true;
  }

  #isPropertiesIdInSample(limit: number): boolean {
    const { table, row } = this.#item;
    const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.PropertiesDistinctId);
    if (isNothing(type)) return true;
    const start = table[row + Row.PropertiesDistinctIdStart]!;
    const end = table[row + Row.PropertiesDistinctIdEnd]!;
    return this.#isSampled({ start, end, type }, limit);
  }

  /** Hashes a sent id only once for all rules. */
  #isSampled(id: { start: number; end: number; type: TokenType }, limit: number): boolean {
    if (this.#sampledStart !== id.start) {
      this.#sampledStart = id.start;
      this.#sampleHash = hashOfId(this.#item.body, id);
    }
    return this.#sampleHash < limit;
  }
}

/** Returns whether the guards accept the type of the properties. */
function hasReadableProperties({ body, table, row }: ItemView): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties);
  if (isObjectOrNothing(type)) return true;
  return isEmptyArray(body, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!);
}

function hashOfId(
  body: Buffer,
  { start, end, type }: { start: number; end: number; type: TokenType },
): number {
  if (type === TokenType.EmptyString) return alwaysSampled;
  if (type === TokenType.PlainString && end - start <= plainIdBytesMax && body[start + 1]! > 0x20)
    return sampleHash(body, start + 1, end - 1);
  return hashOfText(distinctIdText(body, start, end, type).text);
}

/** In place of the start of a sent id: the last hash is that of the cookieless id. */
const cookielessStart = -2;

/** Below the limit of each sample. */
const alwaysSampled = -1;

/** Bytes of the longest text of a rule with quotes, if all its characters are escaped. */
const comparedBytesMax = 6 * ruleTextCharsMax + 2;

/** The stored text of a plain id of so many bytes is the id itself. */
const plainIdBytesMax = 402;

function hashOfText(text: string): number {
  if (text === "") return alwaysSampled;
  const bytes = Buffer.from(text);
  return sampleHash(bytes, 0, bytes.length);
}

/** Returns the maximum bytes of a string that has at most `bytes` bytes without its escapes. */
function escapedBytesMax(bytes: number): number {
  // The quotes, and 6 bytes for each byte of the longest escape. One more character shows the rest.
  return 2 + 6 * (bytes + 4);
}
