// Applies the rules of a project to the items of a body before the guards see them. The changed
// items of a slice are written into one text, which is scanned once, so that the guards and the
// record writer read a changed item like any other.

import { Buffer } from "node:buffer";
import type { MemberFunctions } from "../../records/found-members.ts";
import { type ItemView, isPlain } from "../../records/item-view.ts";
import { Header, Row, type Scanner, ScanStatus } from "../../records/table.ts";
import { Outcome, type RequestOfRules, RuleApplier } from "../../rules/apply.ts";
import type { CompiledRule, CompiledRules, Plan } from "../../rules/compile.ts";
import { FlagSearch } from "../../rules/cookieless.ts";
import type { CompiledSchema } from "../../rules/event-schema.ts";
import { type Cursor, OutOfMemoryError, slowItemBytesMax } from "./plain-form.ts";

/** What the rules decide about an item. */
export const Ruling = {
  /** The item has not been given to the rules yet, because it must be normalised first. */
  None: -1,
  ...Outcome,
  /** The rules must read the item, but it is too large. */
  TooLarge: 10,
} as const;
export type Ruling = (typeof Ruling)[keyof typeof Ruling];

/** The rules of a request's project, and the facts that they read. */
export interface RequestRules extends RequestOfRules {
  readonly rules: CompiledRules;
  /** Whether each item must be normalised before the rules see it. */
  readonly rewritesItems: boolean;
}

const noErrors: readonly string[] = [];
const opening = '{"batch":[';
const closing = "]}";
const textBytesMin = 65_536;

interface RuledItemsOptions extends MemberFunctions {
  /** Creates the scanners of changed items. `rows` is the size of the table. */
  readonly createScanner: (rows: number) => Scanner;
  /** Maximum number of items in a slice. */
  readonly rowsMax: number;
}

export class RuledItems {
  readonly #applier: RuleApplier;
  readonly #slice: ChangedItems;
  readonly #single: ChangedItems;
  readonly #rulings: Int8Array;
  /** Rows of changed items in the table of `#slice`, by the row of the slice. */
  readonly #changedRows: Uint32Array;
  readonly #rulesOf: (CompiledRule | undefined)[] = [];
  readonly #plans: (Plan | undefined)[] = [];
  readonly #schemasOf: (CompiledSchema | undefined)[] = [];
  readonly #errorsOf: (readonly string[])[] = [];
  readonly #refusalsOf: string[] = [];
  readonly #isCookielessOf: boolean[] = [];
  readonly #flags = new FlagSearch();
  #first = 0;
  /** The rule that filtered or quarantined the item of the last call. */
  rule: CompiledRule | undefined = undefined;
  /** The schema of the item of the last call, or undefined. */
  schema: CompiledSchema | undefined = undefined;
  /** The errors that the schema has found. Of a changed item, `checkChanged` finds them. */
  errors: readonly string[] = noErrors;
  /** Whether the item of the last call has got the ids of a cookieless event. */
  isCookieless = false;
  /** Why the item of the last call cannot have them. */
  refusal = "";

  constructor({ findMembers, createScanner, rowsMax }: RuledItemsOptions) {
    this.#applier = new RuleApplier({ findMembers });
    this.#slice = new ChangedItems(createScanner(rowsMax));
    this.#single = new ChangedItems(createScanner(1));
    this.#rulings = new Int8Array(rowsMax);
    this.#changedRows = new Uint32Array(rowsMax);
  }

  /** Applies the rules to the plain items of rows. Changes the row of the view. */
  takeRows(request: RequestRules, view: Cursor, { first, end }: { first: number; end: number }) {
    const { rules } = request;
    const applier = this.#applier;
    this.#first = first;
    applier.begin(rules, request);
    const rows: number[] = [];
    this.#slice.clear();
    const flags = rules.cookieless === undefined ? undefined : this.#flags;
    if (end > first) flags?.begin(view.body, endOfRow(view, end - 1));
    for (let row = first; row < end; row++) {
      view.row = Header.Words + row * Row.Words;
      const at = row - first;
      this.#schemasOf[at] = undefined;
      this.#rulings[at] = Ruling.None;
      if (request.rewritesItems || !isPlain(view)) continue;
      const plan = rules.planOf(view, request.isEngage);
      const needsMembers = plan?.needsMembers === true || flags?.isIn(view) === true;
      const ruling = rulingBefore(view, plan, needsMembers);
      this.#rulings[at] = ruling;
      if (ruling !== Ruling.None) continue;
      this.#plans[at] = plan;
      if (needsMembers) rows.push(row);
      else this.#apply(view, row, false);
    }
    if (rows.length > 0) applier.find(view.body, view.table, rows);
    for (const row of rows) {
      view.row = Header.Words + row * Row.Words;
      this.#apply(view, row, true);
    }
    this.#slice.scan();
  }

  #apply(view: Cursor, row: number, hasMembers: boolean): void {
    const applier = this.#applier;
    const at = row - this.#first;
    const outcome = applier.apply(view, this.#plans[at]!, row, hasMembers);
    this.#rulings[at] = outcome;
    this.#rulesOf[at] = applier.rule;
    this.#isCookielessOf[at] = applier.cookielessId !== undefined;
    if (outcome === Outcome.NoCookielessId) this.#refusalsOf[at] = applier.refusal;
    if (outcome === Outcome.Changed) this.#changedRows[at] = this.#slice.add(applier);
    const { schema } = applier;
    if (schema === undefined || outcome > Outcome.Changed) return;
    this.#schemasOf[at] = schema;
    this.#errorsOf[at] = outcome === Outcome.Same ? applier.checkSchema() : noErrors;
  }

  /** Forgets what `takeRows` decided, so that `take` is called for each item. */
  forget(): void {
    this.#rulings.fill(Ruling.None);
  }

  /** Returns what `takeRows` decided about the item of a row. */
  rulingOf(row: number): Ruling {
    const at = row - this.#first;
    this.rule = this.#rulesOf[at];
    this.schema = this.#schemasOf[at];
    if (this.schema !== undefined) this.errors = this.#errorsOf[at]!;
    const ruling = this.#rulings[at] as Ruling;
    this.isCookieless = ruling === Ruling.Changed && this.#isCookielessOf[at]!;
    if (ruling === Ruling.NoCookielessId) this.refusal = this.#refusalsOf[at]!;
    return ruling;
  }

  /** Checks the last item, which the rules have changed, in plain form. */
  checkChanged(item: ItemView): void {
    if (this.schema !== undefined) this.errors = this.#applier.checkChanged(this.schema, item);
  }

  /** Returns the changed item of a row. Valid until the next call. */
  changedItem(row: number): ItemView {
    return this.#slice.item(this.#changedRows[row - this.#first]!);
  }

  /** Applies the rules to one plain item, in any table. */
  take(request: RequestRules, item: ItemView): Ruling {
    const { rules } = request;
    const applier = this.#applier;
    this.schema = undefined;
    this.isCookieless = false;
    const plan = rules.planOf(item, request.isEngage);
    const needsMembers = plan?.needsMembers === true || this.#hasFlag(rules, item);
    const before = rulingBefore(item, plan, needsMembers);
    if (before !== Ruling.None) return before;
    const row = (item.row - Header.Words) / Row.Words;
    applier.begin(rules, request);
    if (needsMembers) applier.find(item.body, item.table, [row]);
    const outcome = applier.apply(item, plan!, row, needsMembers);
    this.rule = applier.rule;
    this.isCookieless = applier.cookielessId !== undefined;
    this.refusal = applier.refusal;
    if (outcome <= Outcome.Changed) this.schema = applier.schema;
    if (this.schema !== undefined && outcome === Outcome.Same) this.errors = applier.checkSchema();
    if (outcome !== Outcome.Changed) return outcome;
    this.#single.clear();
    this.#single.add(applier);
    this.#single.scan();
    return outcome;
  }

  #hasFlag({ cookieless }: CompiledRules, item: ItemView): boolean {
    if (cookieless === undefined) return false;
    this.#flags.begin(item.body, item.table[item.row + Row.ItemEnd]!);
    return this.#flags.isIn(item);
  }

  /**
   * Returns a plain item for the rejected events: a cookieless event without the values that are
   * not stored, any other event as it is. Returns undefined if the event must not be stored at all.
   * Valid until the next call.
   */
  withoutVisitor(request: RequestRules, item: ItemView): ItemView | undefined {
    const applier = this.#applier;
    applier.begin(request.rules, request);
    const outcome = applier.removeVisitor(item);
    if (outcome === Outcome.NoSalt) return undefined;
    if (outcome !== Outcome.Changed) return item;
    this.#single.clear();
    this.#single.add(applier);
    this.#single.scan();
    return this.changedSingle;
  }

  /** Returns the item that `take` has changed. Valid until the next call. */
  get changedSingle(): ItemView {
    return this.#single.item(0);
  }
}

/** Returns the ruling if it does not depend on the rules of the plan, else None. */
function rulingBefore(
  { table, row }: ItemView,
  plan: Plan | undefined,
  needsMembers: boolean,
): Ruling {
  // The guards drop an item without a name.
  if (plan === undefined) return Ruling.Same;
  if (plan.rules.length === 0 && !needsMembers) return Ruling.Same;
  const bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
  return needsMembers && bytes > slowItemBytesMax ? Ruling.TooLarge : Ruling.None;
}

function endOfRow({ table }: ItemView, row: number): number {
  return table[Header.Words + row * Row.Words + Row.ItemEnd]!;
}

/** Texts of changed items as one batch, and its table. The memory is reused. */
class ChangedItems {
  readonly #scanner: Scanner;
  readonly #cursor: Cursor;
  #text = Buffer.from(opening);
  #end = opening.length;
  #count = 0;

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#cursor = { body: this.#text, table: scanner.table, row: 0 };
  }

  clear(): void {
    this.#count = 0;
    this.#end = opening.length;
  }

  /** Adds the last item of the applier. Returns its row. */
  add(applier: RuleApplier): number {
    const bytes = this.#end + 1 + applier.bytesMax + closing.length;
    if (bytes > this.#text.length) this.#grow(bytes);
    if (this.#count > 0) this.#text[this.#end++] = 0x2c;
    this.#end = applier.write(this.#text, this.#end);
    return this.#count++;
  }

  scan(): void {
    if (this.#count === 0) return;
    const end = this.#end + this.#text.write(closing, this.#end, "latin1");
    this.#cursor.body = this.#text;
    const status = this.#scanner.scanPart(this.#text, 0, end);
    if (status === ScanStatus.OutOfMemory)
      throw new OutOfMemoryError("cannot scan a changed event: no memory");
    if (status !== ScanStatus.Ok) throw new Error(`cannot scan a changed event: status ${status}`);
  }

  item(row: number): ItemView {
    this.#cursor.row = Header.Words + row * Row.Words;
    return this.#cursor;
  }

  #grow(bytes: number): void {
    const text = Buffer.allocUnsafeSlow(Math.max(textBytesMin, 2 * bytes));
    this.#text.copy(text, 0, 0, this.#end);
    this.#text = text;
  }
}
