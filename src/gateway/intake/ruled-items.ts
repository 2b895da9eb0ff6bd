// Applies the rules of a project to the items of a body before the guards see them. The addon writes
// the changed items of a slice into one text, and their rows into a table, so that the guards and
// the record writer read a changed item like any other.

import { Buffer } from "node:buffer";
import type { ChangeFunctions } from "../../records/item-changes.ts";
import { type ItemView, isPlain } from "../../records/item-view.ts";
import { Header, Row, type Scanner, ScanStatus, tableWords } from "../../records/table.ts";
import { Outcome, type RequestOfRules, RuleApplier } from "../../rules/apply.ts";
import type { CompiledRule, CompiledRules, Plan } from "../../rules/compile.ts";
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
const textBytesMin = 65_536;

interface RuledItemsOptions extends ChangeFunctions {
  /** Creates the scanner of changed items. `rows` is the size of the table. */
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
  #first = 0;
  /** The rule that filtered or quarantined the item of the last call. */
  rule: CompiledRule | undefined = undefined;
  /** The schema of the item of the last call, or undefined. */
  schema: CompiledSchema | undefined = undefined;
  /** The errors that the schema has found. */
  errors: readonly string[] = noErrors;

  constructor({ createScanner, rowsMax, ...functions }: RuledItemsOptions) {
    this.#applier = new RuleApplier(functions);
    const scanner = createScanner(1);
    this.#slice = new ChangedItems(scanner, rowsMax);
    this.#single = new ChangedItems(scanner, 1);
    this.#rulings = new Int8Array(rowsMax);
    this.#changedRows = new Uint32Array(rowsMax);
  }

  /**
   * Applies the rules to the plain items of rows of the scanner's table. Changes the row of the
   * view.
   */
  takeRows(
    request: RequestRules,
    view: Cursor,
    { scanner, first, end }: { scanner: Scanner; first: number; end: number },
  ): void {
    const { rules } = request;
    const applier = this.#applier;
    this.#first = first;
    applier.begin(rules, request);
    const rows: number[] = [];
    for (let row = first; row < end; row++) {
      view.row = Header.Words + row * Row.Words;
      const at = row - first;
      this.#schemasOf[at] = undefined;
      this.#rulings[at] = Ruling.None;
      if (request.rewritesItems || !isPlain(view)) continue;
      const plan = rules.planOf(view, request.isEngage);
      const ruling = rulingBefore(view, plan);
      this.#rulings[at] = ruling;
      if (ruling !== Ruling.None) continue;
      this.#plans[at] = plan;
      if (plan!.needsMembers) rows.push(row);
      else this.#apply(view, row);
    }
    if (rows.length > 0) applier.find(scanner, view.body, rows);
    for (const row of rows) {
      view.row = Header.Words + row * Row.Words;
      this.#apply(view, row);
    }
    this.#slice.take(applier, view);
  }

  #apply(view: Cursor, row: number): void {
    const applier = this.#applier;
    const at = row - this.#first;
    const outcome = applier.apply(view, this.#plans[at]!, row);
    this.#rulings[at] = outcome;
    this.#rulesOf[at] = applier.rule;
    if (outcome === Outcome.Changed) this.#changedRows[at] = applier.changeCount - 1;
    const { schema } = applier;
    if (schema === undefined || outcome > Outcome.Changed) return;
    this.#schemasOf[at] = schema;
    this.#errorsOf[at] = applier.checkSchema();
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
    return this.#rulings[at] as Ruling;
  }

  /** Returns the changed item of a row. Valid until the next call. */
  changedItem(row: number): ItemView {
    return this.#slice.item(this.#changedRows[row - this.#first]!);
  }

  /** Applies the rules to one plain item, in the table of the scanner. */
  take(request: RequestRules, item: ItemView, scanner: Scanner): Ruling {
    const { rules } = request;
    const applier = this.#applier;
    this.schema = undefined;
    const plan = rules.planOf(item, request.isEngage);
    const before = rulingBefore(item, plan);
    if (before !== Ruling.None) return before;
    const row = (item.row - Header.Words) / Row.Words;
    applier.begin(rules, request);
    if (plan!.needsMembers) applier.find(scanner, item.body, [row]);
    const outcome = applier.apply(item, plan!, row);
    this.rule = applier.rule;
    if (outcome <= Outcome.Changed) this.schema = applier.schema;
    if (this.schema !== undefined) this.errors = applier.checkSchema();
    if (outcome === Outcome.Changed) this.#single.take(applier, item);
    return outcome;
  }

  /** Returns the item that `take` has changed. Valid until the next call. */
  get changedSingle(): ItemView {
    return this.#single.item(0);
  }
}

/** Returns the ruling if it does not depend on the rules of the plan, else None. */
function rulingBefore({ table, row }: ItemView, plan: Plan | undefined): Ruling {
  // The guards drop an item without a name.
  if (plan === undefined) return Ruling.Same;
  if (plan.rules.length === 0 && !plan.needsMembers) return Ruling.Same;
  const bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
  return plan.needsMembers && bytes > slowItemBytesMax ? Ruling.TooLarge : Ruling.None;
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
