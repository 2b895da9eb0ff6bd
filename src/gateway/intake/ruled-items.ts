// Applies the rules of a project to the items of a body before the guards see them. The addon writes
// the changed items of a slice into one text, and their rows into a table, so that the guards and
// the record writer read a changed item like any other.

import { Buffer } from "node:buffer";
import type { ChangeFunctions } from "../../records/item-changes.ts";
import { type ItemView, isPlain } from "../../records/item-view.ts";
import { isUnknown, NamedRows, type NameFunctions, NameResult } from "../../records/name-table.ts";
import { Header, Row, type Scanner, ScanStatus, tableWords } from "../../records/table.ts";
import { Outcome, type RequestOfRules, RuleApplier } from "../../rules/apply.ts";
import { type CompiledRule, type CompiledRules, isIdle, type Plan } from "../../rules/compile.ts";
import { FlagSearch } from "../../rules/cookieless.ts";
import type { SchemaCheck } from "../../rules/event-schema.ts";
import { type Cursor, OutOfMemoryError, slowItemBytesMax } from "./plain-form.ts";

/** What the rules decide about an item. */
export const Ruling = {
  /** No rule and no schema is for events of the name. */
  Unruled: -2,
  /** The item has not been given to the rules yet, because it must be rewritten first. */
  None: -1,
  ...Outcome,
  /** The rules must read the item, but it is too large. */
  TooLarge: 10,
} as const;
export type Ruling = (typeof Ruling)[keyof typeof Ruling];

interface RuledRequest extends RequestOfRules {
  /** Its table has the items of the body. */
  readonly scanner: Scanner;
  /** If this is set, each item is rewritten before the rules see it. Its name stays the same. */
  readonly additions: string | undefined;
}

/** The indexes of rows, from the first one to before `end`. */
export interface Rows {
  readonly first: number;
  readonly end: number;
}

const textBytesMin = 65_536;

interface RuledItemsOptions extends ChangeFunctions, NameFunctions {
  /** Creates the scanner of changed items. `rows` is the size of the table. */
  readonly createScanner: (rows: number) => Scanner;
  /** Maximum number of items in a slice. */
  readonly rowsMax: number;
}

export class RuledItems {
  readonly #applier: RuleApplier;
  readonly #findNames: NameFunctions["findNames"];
  /** The words of NamedRows. */
  readonly #named: Uint32Array;
  readonly #slice: ChangedItems;
  readonly #single: ChangedItems;
  readonly #rulings: Int8Array;
  /** Rows of changed items in the table of `#slice`, by the row of the slice. */
  readonly #changedRows: Uint32Array;
  /** The rows whose members the applier opens. */
  readonly #opened: Uint32Array;
  readonly #rulesOf: (CompiledRule | undefined)[] = [];
  readonly #plans: (Plan | undefined)[] = [];
  readonly #checksOf: (SchemaCheck | undefined)[] = [];
  readonly #refusalsOf: string[] = [];
  readonly #isCookielessOf: boolean[] = [];
  readonly #flags = new FlagSearch();
  #first = 0;
  /** The rule that filtered or quarantined the item of the last call. */
  rule: CompiledRule | undefined = undefined;
  /** What the schema of the item of the last call has found, unless the item is not stored. */
  check: SchemaCheck | undefined = undefined;
  /** Whether the item of the last call has got the ids of a cookieless event. */
  isCookieless = false;
  /** Why the item of the last call cannot have them. */
  refusal = "";

  constructor({ createScanner, rowsMax, findNames, changeItems }: RuledItemsOptions) {
    this.#findNames = findNames;
    this.#named = new Uint32Array(NamedRows.Results + rowsMax);
    this.#applier = new RuleApplier({ changeItems });
    const scanner = createScanner(1);
    this.#slice = new ChangedItems(scanner, rowsMax);
    this.#single = new ChangedItems(scanner, 1);
    this.#rulings = new Int8Array(rowsMax);
    this.#changedRows = new Uint32Array(rowsMax);
    this.#opened = new Uint32Array(rowsMax);
  }

  /**
   * Applies the rules to the plain items of rows. Returns false if all items are unruled. Changes
   * the row of the view.
   */
  takeRows(
    rules: CompiledRules,
    request: RuledRequest,
    view: Cursor,
    { first, end }: Rows,
  ): boolean {
    this.#first = first;
    if (!this.#findPlans(rules, view, { first, end }) && rules.cookieless === undefined)
      return false;
    const applier = this.#applier;
    applier.begin(rules, request);
    const flags = rules.cookieless === undefined ? undefined : this.#flags;
    if (end > first) flags?.begin(view.body, endOfRow(view, end - 1));
    const named = this.#named;
    const rulings = this.#rulings;
    const hasAdditions = request.additions !== undefined;
    let hasUnknown = false;
    let opened = 0;
    for (let row = first; row < end; row++) {
      const at = row - first;
      const result = named[NamedRows.Results + at]!;
      const isUnruled = result === 0 && flags === undefined;
      rulings[at] = isUnruled ? Ruling.Unruled : Ruling.None;
      if (isUnruled || hasAdditions) continue;
      view.row = Header.Words + row * Row.Words;
      if (result === NameResult.Unread && !isPlain(view)) continue;
      const hasFlag = flags?.isIn(view) === true;
      if (result === 0 && !hasFlag) {
        rulings[at] = Ruling.Unruled;
        continue;
      }
      const plan = rules.namedPlans.get(result) ?? rules.planOf(view, request.isEngage);
      if (isUnknown(result)) hasUnknown = true;
      this.#plans[at] = plan;
      const needsMembers = hasFlag || plan?.needsMembers === true;
      const ruling = rulingBefore(view, plan, needsMembers);
      rulings[at] = ruling;
      if (ruling !== Ruling.None) continue;
      if (!needsMembers) {
        this.#apply(view, row, false);
        continue;
      }
      const removals = flags === undefined ? plan!.removals : 0;
      const isIdle = applier.addRow(row, plan!, removals);
      if (removals === 0) this.#opened[opened++] = row;
      if (!isIdle) continue;
      // This is final unless the row has an entry.
      rulings[at] = Ruling.Same;
      this.#checksOf[at] = plan!.schema?.valid;
    }
    if (hasUnknown) this.#storePlans(rules, view, { first, end });
    applier.find(request.scanner, view.body);
    for (let row = applier.nextCut(view.table); row >= 0; row = applier.nextCut(view.table)) {
      this.#rulings[row - first] = Ruling.Changed;
      this.#changedRows[row - first] = applier.changeCount - 1;
      this.#isCookielessOf[row - first] = false;
    }
    for (let index = 0; index < opened; index++) {
      const row = this.#opened[index]!;
      if (this.#rulings[row - first] === Ruling.Same && row !== applier.nextRow) continue;
      view.row = Header.Words + row * Row.Words;
      this.#apply(view, row, true);
    }
    this.#slice.take(applier, view);
    return true;
  }

  /** Returns false if all items are unruled. */
  #findPlans({ namedPlans }: CompiledRules, { body, table }: ItemView, rows: Rows): boolean {
    const named = this.#named;
    named[NamedRows.First] = rows.first;
    named[NamedRows.Count] = rows.end - rows.first;
    return this.#findNames(body, table, namedPlans.slots, named) > 0;
  }

  #storePlans(
    { namedPlans }: CompiledRules,
    { body, table }: ItemView,
    { first, end }: Rows,
  ): void {
    for (let row = first; row < end; row++) {
      const result = this.#named[NamedRows.Results + row - first]!;
      if (!isUnknown(result)) continue;
      const words = Header.Words + row * Row.Words;
      const [start, end] = [table[words + Row.EventStart]! + 1, table[words + Row.EventEnd]! - 1];
      const plan = this.#plans[row - first]!;
      namedPlans.store(result, body.subarray(start, end), isIdle(plan) ? undefined : plan);
    }
  }

  #apply(view: Cursor, row: number, hasMembers: boolean): void {
    const applier = this.#applier;
    const at = row - this.#first;
    const outcome = applier.apply(view, this.#plans[at]!, row, hasMembers);
    this.#rulings[at] = outcome;
    if (outcome > Outcome.Changed) {
      this.#rulesOf[at] = applier.rule;
      this.#refusalsOf[at] = applier.refusal;
      return;
    }
    if (outcome === Outcome.Changed) {
      this.#changedRows[at] = applier.changeCount - 1;
      this.#isCookielessOf[at] = applier.cookielessId !== undefined;
    }
    this.#checksOf[at] = applier.check;
  }

  /** Forgets what `takeRows` decided, so that `take` is called for each item. */
  forget(): void {
    this.#rulings.fill(Ruling.None);
  }

  /** Returns what `takeRows` decided about the item of a row. */
  rulingOf(row: number): Ruling {
    const at = row - this.#first;
    const ruling = this.#rulings[at] as Ruling;
    if (ruling === Ruling.Unruled || ruling === Ruling.None) return ruling;
    if (ruling > Ruling.Changed) {
      this.rule = this.#rulesOf[at];
      this.refusal = this.#refusalsOf[at] ?? "";
      return ruling;
    }
    this.check = this.#checksOf[at];
    this.isCookieless = ruling === Ruling.Changed && this.#isCookielessOf[at]!;
    return ruling;
  }

  /** Returns the changed item of a row. Valid until the next call. */
  changedItem(row: number): ItemView {
    return this.#slice.item(this.#changedRows[row - this.#first]!);
  }

  /** Applies the rules to one plain item, in the table of the scanner. */
  take(
    rules: CompiledRules,
    request: RequestOfRules,
    { item, scanner }: { readonly item: ItemView; readonly scanner: Scanner },
  ): Ruling {
    const applier = this.#applier;
    this.check = undefined;
    this.isCookieless = false;
    const row = (item.row - Header.Words) / Row.Words;
    const rows = { first: row, end: row + 1 };
    const hasFlag = this.#hasFlag(rules, item);
    if (!this.#findPlans(rules, item, rows) && !hasFlag) return Ruling.Unruled;
    const result = this.#named[NamedRows.Results]!;
    const plan = rules.namedPlans.get(result) ?? rules.planOf(item, request.isEngage);
    this.#plans[0] = plan;
    this.#storePlans(rules, item, rows);
    const needsMembers = hasFlag || plan?.needsMembers === true;
    const before = rulingBefore(item, plan, needsMembers);
    if (before !== Ruling.None) return before;
    applier.begin(rules, request);
    const removals = rules.cookieless === undefined ? plan!.removals : 0;
    if (needsMembers) {
      applier.addRow(row, plan!, removals);
      applier.find(scanner, item.body);
    }
    if (removals !== 0) {
      if (applier.nextCut(item.table) < 0) return Ruling.Same;
      this.#single.take(applier, item);
      return Ruling.Changed;
    }
    const outcome = applier.apply(item, plan!, row, needsMembers);
    this.rule = applier.rule;
    this.isCookieless = applier.cookielessId !== undefined;
    this.refusal = applier.refusal;
    this.check = applier.check;
    if (outcome === Outcome.Changed) this.#single.take(applier, item);
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
  withoutVisitor(
    rules: CompiledRules,
    request: RequestOfRules,
    { item, scanner }: { readonly item: ItemView; readonly scanner: Scanner },
  ): ItemView | undefined {
    const applier = this.#applier;
    applier.begin(rules, request);
    const outcome = applier.removeVisitor(item, scanner);
    if (outcome === Outcome.NoSalt) return undefined;
    if (outcome !== Outcome.Changed) return item;
    this.#single.take(applier, item);
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
  if (plan === undefined || (plan.rules.length === 0 && !needsMembers)) return Ruling.Unruled;
  const bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
  return needsMembers && bytes > slowItemBytesMax ? Ruling.TooLarge : Ruling.None;
}

function endOfRow({ table }: ItemView, row: number): number {
  return table[Header.Words + row * Row.Words + Row.ItemEnd]!;
}

/** Texts of changed items, and their table. The memory is reused. */
class ChangedItems {
  /** Scans an item if a rule has changed it beyond what its row can follow. */
  readonly #scanner: Scanner;
  readonly #scanned: Cursor;
  readonly #cursor: Cursor;
  #text = Buffer.alloc(0);

  constructor(scanner: Scanner, rowsMax: number) {
    this.#scanner = scanner;
    this.#scanned = { body: this.#text, table: scanner.table, row: Header.Words };
    this.#cursor = { body: this.#text, table: new Uint32Array(tableWords(rowsMax)), row: 0 };
  }

  /** Takes all changed items of the applier. */
  take(applier: RuleApplier, { body, table }: ItemView): void {
    if (applier.changeCount === 0) return;
    const { bytesMax } = applier;
    if (bytesMax > this.#text.length) {
      this.#text = Buffer.allocUnsafeSlow(Math.max(textBytesMin, 2 * bytesMax));
      this.#cursor.body = this.#text;
    }
    applier.write(body, table, this.#text, this.#cursor.table);
  }

  item(row: number): ItemView {
    const cursor = this.#cursor;
    cursor.row = Header.Words + row * Row.Words;
    return cursor.table[cursor.row + Row.MoreTypes] === 0 ? this.#scan() : cursor;
  }

  #scan(): ItemView {
    const { table, row } = this.#cursor;
    const scanned = this.#scanned;
    // The item is in brackets, because an item with a member `batch` would count as a batch.
    scanned.body = this.#text.subarray(
      table[row + Row.ItemStart]! - 1,
      table[row + Row.ItemEnd]! + 1,
    );
    const status = this.#scanner.scan(scanned.body);
    if (status === ScanStatus.OutOfMemory)
      throw new OutOfMemoryError("cannot scan a changed event: no memory");
    if (status !== ScanStatus.Ok) throw new Error(`cannot scan a changed event: status ${status}`);
    return scanned;
  }
}
