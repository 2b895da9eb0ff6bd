// Applies the compiled rules of a project to its events: decides whether an event is stored, and
// writes the changed text of the event. Everything is synchronous, and the objects are reused.

import { Buffer } from "node:buffer";
import type { Lane } from "../platform/base/lane.ts";
import { distinctIdText } from "../records/distinct-id.ts";
import type { MemberFunctions } from "../records/found-members.ts";
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
  matchedBytesMax,
  type Plan,
  type PropertyTest,
} from "./compile.ts";
import type { CookielessMembers, CookielessRule, Visitor } from "./cookieless.ts";
import { EventMembers, scalarOf } from "./event-members.ts";
import type { CompiledSchema } from "./event-schema.ts";
import { sampleHash } from "./hashing.ts";
import { ruleTextCharsMax } from "./limits.ts";
import type { Scalar } from "./rules-file.ts";
import { TextEdits } from "./text-edits.ts";
import type { TextPatterns } from "./text-patterns.ts";

export const Outcome = {
  /** The event is stored as it is. */
  Same: 0,
  /** The event is stored with the text that `write` returns. */
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
  readonly #edits = new TextEdits();
  readonly #members: EventMembers;
  #rules!: CompiledRules;
  #request!: RequestOfRules;
  #item!: ItemView;
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
      const value = this.#scalarAt(path);
      return typeof value === "string" ? value : "";
    },
    has: (path) => this.#members.has(path),
    set: (path, text) => void this.#set(path, text, false),
    remove: (path) => this.#members.remove(path),
  };
  /** The start of the last hashed distinct id in the body, and its hash. */
  #sampledStart = -1;
  #sampleHash = 0;
  /** The rule that filtered or quarantined the last event. */
  rule: CompiledRule | undefined = undefined;
  /** The schema of the last event's name after the rules, unless the guards will drop the event. */
  schema: CompiledSchema | undefined = undefined;

  constructor(functions: MemberFunctions) {
    this.#members = new EventMembers(functions, this.#edits);
  }

  begin(rules: CompiledRules, request: RequestOfRules): void {
    this.#rules = rules;
    this.#request = request;
    this.#members.begin(rules);
  }

  /**
   * Finds the members of plain items in one call of the addon. `rows` are the indexes of the rows
   * whose plan needs members, ascending. Then call `apply` for these rows in the same order.
   */
  find(body: Buffer, table: Uint32Array, rows: readonly number[]): void {
    this.#members.find(body, table, rows);
  }

  /**
   * Applies the rules of the plan to a plain item. `row` is the index of its row. `hasMembers`:
   * whether its members were found.
   */
  apply(item: ItemView, plan: Plan, row: number, hasMembers: boolean = plan.needsMembers): Outcome {
    this.#begin(item);
    this.#hasMembers = hasMembers;
    if (hasMembers) {
      this.#members.open(item, row);
      const { cookieless, urls } = this.#rules;
      if (cookieless !== undefined && this.#isTruthy(cookieless.flagPath)) {
        this.schema = undefined;
        const outcome = this.#setCookielessIds(cookieless);
        if (outcome !== Outcome.Changed) return outcome;
      }
      if (urls !== undefined) this.#cutUrls();
    } else {
      this.#members.openNone(item);
    }
    this.schema = plan.schema;
    const outcome = this.#applyRules(plan);
    if (outcome !== Outcome.Same) return outcome;
    if (this.schema !== undefined && !hasReadableProperties(item)) this.schema = undefined;
    return this.#hasChanges ? this.#edit() : Outcome.Same;
  }

  #begin(item: ItemView): void {
    this.#item = item;
    this.#name = undefined;
    this.#hasChanges = false;
    this.#sampledStart = -1;
    this.rule = undefined;
    this.cookielessId = undefined;
    this.#visitorAgent = "";
  }

  /**
   * Removes from a plain item only what is not stored of a cookieless event, and sets its ids if it
   * can have them. Returns Same for any other event, and NoSalt if the ids are not known now.
   */
  removeVisitor(item: ItemView): Outcome {
    const { cookieless } = this.#rules;
    const row = (item.row - Header.Words) / Row.Words;
    this.#begin(item);
    this.#members.find(item.body, item.table, [row]);
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

  /** Checks the last event, which must be the same as sent. Returns the errors. */
  checkSchema(): readonly string[] {
    if (this.#hasChanges) this.#members.forget();
    return this.schema!.check(this.#members);
  }

  /** Checks a plain item that the rules have changed. Returns the errors. */
  checkChanged(schema: CompiledSchema, item: ItemView): readonly string[] {
    const row = (item.row - Header.Words) / Row.Words;
    this.#members.find(item.body, item.table, [row]);
    this.#members.open(item, row);
    return schema.check(this.#members);
  }

  /** Maximum bytes of the changed text of the last event. */
  get bytesMax(): number {
    const { table, row } = this.#item;
    return table[row + Row.ItemEnd]! - table[row + Row.ItemStart]! + this.#edits.growthMax;
  }

  /** Writes the changed text of the last event to the target. Returns the end of the text. */
  write(target: Buffer, at: number): number {
    const { body, table, row } = this.#item;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    return this.#edits.write(body, start, end, target, at);
  }

  #edit(): Outcome {
    const { table, row } = this.#item;
    const edits = this.#edits;
    edits.clear();
    const name = this.#name === undefined ? undefined : JSON.stringify(this.#name);
    const isNameless = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event) === TokenType.Absent;
    if (name !== undefined && !isNameless)
      edits.replace(table[row + Row.EventStart]!, table[row + Row.EventEnd]!, name);
    this.#members.edit(isNameless ? name : undefined);
    if (this.cookielessId !== undefined) this.#editCookieless(this.cookielessId);
    return edits.isEmpty ? Outcome.Same : Outcome.Changed;
  }

  /** Edits the members of a cookieless event that are next to its properties. */
  #editCookieless(id: string): void {
    const { table, row } = this.#item;
    const edits = this.#edits;
    if (!isNothing(typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId)))
      edits.replace(table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!, `"${id}"`);
    // The options of the newer protocol are in the properties, and a replay would add them again.
    if (typeAt(extraTypes(this.#item), ExtraShift.Options) === TokenType.Absent) return;
    const extra = extraOf(table, row);
    edits.replace(table[extra + Extra.OptionsStart]!, table[extra + Extra.OptionsEnd]!, "null");
  }

  #applyRules(plan: Plan): Outcome {
    const { counts } = this.#rules;
    let { rules } = plan;
    for (let at = 0; at < rules.length; at++) {
      const rule = rules[at]!;
      if (!this.#matches(rule)) continue;
      const isObserved = rule.mode === "observe";
      let hasEffect = false;
      for (const action of rule.actions) {
        const outcome = this.#act(action, isObserved);
        if (outcome === Outcome.Same) continue;
        hasEffect = true;
        if (isObserved) continue;
        this.#hasChanges = true;
        if (outcome === Outcome.Changed) continue;
        counts[rule.index]!++;
        this.rule = rule;
        return outcome;
      }
      if (hasEffect) counts[rule.index]!++;
      if (this.#name !== undefined && this.#isRenaming(rule, isObserved)) {
        const plan = this.#rules.planOfName(this.#name);
        this.schema = plan.schema;
        rules = plan.rules;
        at = rules.findIndex(({ index }) => index > rule.index) - 1;
        if (at < -1) break;
      }
    }
    return Outcome.Same;
  }

  #isRenaming(rule: CompiledRule, isObserved: boolean): boolean {
    return !isObserved && rule.actions.some(({ kind }) => kind === "rename");
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
        const value = this.#isLong(path) ? undefined : this.#scalarAt(path);
        return value !== undefined && match.values.includes(value);
      }
    }
  }

  /** Whether the value of a path is longer than any value of a condition. */
  #isLong(path: number): boolean {
    const members = this.#members;
    const entry = members.entryOf(path);
    const changed = members.changedText(path, entry);
    if (changed !== undefined) return changed.length > comparedBytesMax;
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
    const changed = members.changedText(path, entry);
    if (changed !== undefined) {
      if (changed.length <= matchedBytesMax || changed[0] !== '"') return scalarOf(changed);
      const bytes = Buffer.from(changed);
      return stringBeginning(bytes, 0, bytes.length, matchedBytesMax);
    }
    if (entry === 0) return undefined;
    const { body } = this.#item;
    switch (members.typeOf(entry)) {
      case TokenType.PlainString:
      case TokenType.EscapedString:
        return stringBeginning(body, members.startOf(entry), members.endOf(entry), matchedBytesMax);
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
      case "keepOnly": {
        const isKept = (path: number): boolean =>
          action.paths.has(path) || this.#rules.readPaths.has(path);
        return this.#members.keepOnly(isKept, isObserved) ? Outcome.Changed : Outcome.Same;
      }
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
        for (const path of action.paths)
          if (this.#members.has(path) && this.#replaceEach(path, isObserved, this.#hashed))
            changes = true;
        break;
      case "set":
        for (const { path, text } of action.members)
          if (this.#set(path, text, isObserved)) changes = true;
        break;
      case "cut":
        for (const { path, bytesMax } of action.members) {
          if (!this.#members.has(path)) continue;
          const shortened = (text: string | undefined, entry: number): string | undefined =>
            this.#shortened(text, entry, bytesMax);
          if (this.#replaceEach(path, isObserved, shortened)) changes = true;
        }
        break;
    }
    return changes;
  }

  /**
   * Replaces each member of a path for which `textOf` returns a JSON text. `textOf` gets the JSON
   * text of a member that was changed before, or the entry of a member as it was sent.
   */
  #replaceEach(
    path: number,
    isObserved: boolean,
    textOf: (changed: string | undefined, entry: number) => string | undefined,
  ): boolean {
    const members = this.#members;
    let changes = false;
    for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
      const text = textOf(members.changedText(path, entry), entry);
      if (text === undefined) continue;
      changes = true;
      if (!isObserved) members.replace(entry, text);
    }
    const added = members.changedText(path, 0);
    const text = added === undefined ? undefined : textOf(added, 0);
    if (text === undefined) return changes;
    if (!isObserved) members.add(path, text);
    return true;
  }

  readonly #hashed = (changed: string | undefined, entry: number): string | undefined => {
    const { hash } = this.#rules;
    if (changed !== undefined) {
      const value = scalarOf(changed);
      if (typeof value !== "string" && typeof value !== "number") return undefined;
      return `"${hash.of(String(value))}"`;
    }
    const members = this.#members;
    const { body } = this.#item;
    const [start, end] = [members.startOf(entry), members.endOf(entry)];
    switch (members.typeOf(entry)) {
      case TokenType.PlainString:
      case TokenType.EmptyString:
        return `"${hash.of(body.subarray(start + 1, end - 1))}"`;
      case TokenType.EscapedString:
        return `"${hash.of(JSON.parse(body.toString("utf8", start, end)) as string)}"`;
      case TokenType.Number:
      case TokenType.Object:
      case TokenType.Array:
        return `"${hash.of(body.subarray(start, end))}"`;
      default:
        return undefined;
    }
  };

  #shortened(changed: string | undefined, entry: number, bytesMax: number): string | undefined {
    if (changed !== undefined) {
      const value = scalarOf(changed);
      return typeof value === "string" ? shortenedText(Buffer.from(value), bytesMax) : undefined;
    }
    const members = this.#members;
    const [start, end] = [members.startOf(entry), members.endOf(entry)];
    if (end - start - 2 <= bytesMax || !isString(members.typeOf(entry))) return undefined;
    const { body } = this.#item;
    const text =
      members.typeOf(entry) === TokenType.PlainString
        ? body.subarray(start + 1, end - 1)
        : Buffer.from(JSON.parse(body.toString("utf8", start, end)) as string);
    return shortenedText(text, bytesMax);
  }

  #set(path: number, text: string, isObserved: boolean): boolean {
    const members = this.#members;
    const before = members.entryOf(path);
    if (before === 0) {
      if (members.changedText(path, 0) === text) return false;
      if (!isObserved) members.add(path, text);
      return true;
    }
    return this.#replaceEach(path, isObserved, (changed, entry) =>
      (changed ?? this.#sentTextLike(text, entry)) === text ? undefined : text,
    );
  }

  /** Returns the sent text; "" if it cannot be the same as the other text. */
  #sentTextLike(other: string, entry: number): string {
    const bytes = this.#members.endOf(entry) - this.#members.startOf(entry);
    return bytes > 3 * other.length ? "" : this.#sentText(entry);
  }

  #sentText(entry: number): string {
    const { body } = this.#item;
    return body.toString("utf8", this.#members.startOf(entry), this.#members.endOf(entry));
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
    for (const path of urlPaths) {
      if (this.#members.entryOf(path) === 0) continue;
      const cut = (_: string | undefined, entry: number): string | undefined => {
        if (!isString(this.#members.typeOf(entry))) return undefined;
        const url = JSON.parse(this.#sentText(entry)) as string;
        const rest = urls!.cut(url);
        return rest === url ? undefined : JSON.stringify(rest);
      };
      if (this.#replaceEach(path, false, cut)) this.#hasChanges = true;
    }
  }

  /** Events without a distinct id are in every sample, because the guards drop them. */
  #isInSample(limit: number): boolean {
    if (this.cookielessId !== undefined) return hashOfText(this.cookielessId) < limit;
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
      const changed = members.changedText(path, entry);
      if (changed !== undefined) {
        const text = String(scalarOf(changed) ?? "");
        if (text !== "") return hashOfText(text) < limit;
      } else if (entry !== 0 && !isNothing(members.typeOf(entry))) {
        const [start, end] = [members.startOf(entry), members.endOf(entry)];
        return this.#isSampled({ start, end, type: members.typeOf(entry) }, limit);
      }
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

/** Returns the JSON text of the first complete characters; undefined if the text is short. */
function shortenedText(text: Buffer, bytesMax: number): string | undefined {
  if (text.length <= bytesMax) return undefined;
  let end = bytesMax;
  while (end > 0 && (text[end]! & 0xc0) === 0x80) end--;
  return JSON.stringify(text.toString("utf8", 0, end));
}
