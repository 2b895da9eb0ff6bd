// Applies the rules of a project to the items of a body before the guards see them. The addon writes
// the changed items of a slice into one text, and their rows into a table, so that the guards and
// the record writer read a changed item like any other.

import { Buffer } from "node:buffer";
import type { ChangeFunctions } from "../../records/item-changes.ts";
import type { ItemView } from "../../records/item-view.ts";
import type { NameFunctions } from "../../records/name-table.ts";
import {
  createRowTasks,
  hasSlot,
  needsMembers,
  RowTask,
  RowTasks,
  TaskKind,
  taskAt,
} from "../../records/row-tasks.ts";
import { Header, Row, type Scanner, ScanStatus, tableWords } from "../../records/table.ts";
import { Outcome, type RequestOfRules, RuleApplier } from "../../rules/apply.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import type { CompiledRule } from "../../rules/compiled-rule.ts";
import { FlagSearch } from "../../rules/cookieless.ts";
import type { CompiledSchema, SchemaCheck } from "../../rules/event-schema.ts";
import type { Plan } from "../../rules/plans.ts";
import { type Cursor, OutOfMemoryError, slowItemBytesMax } from "./plain-form.ts";

/** What the rules decide about an item. */
export const Ruling = {
  /** No rule and no schema is for events of the name. */
  Unruled: TaskKind.Unruled,
  /** The item has not been given to the rules yet, because it must be rewritten first. */
  None: TaskKind.Rewrite,
  /** The rules must read the item, but it is too large. */
  TooLarge: TaskKind.TooLarge,
  /** The addon has finished the item. It has no schema, or passes it if it is Valid. */
  Stored: TaskKind.Stored,
  Valid: TaskKind.Valid,
  Edited: TaskKind.Edited,
  ...Outcome,
} as const;
export type Ruling = (typeof Ruling)[keyof typeof Ruling];

/** Items in the table of a scanner. */
interface ScannedItems {
  readonly body: Buffer;
  readonly scanner: Scanner;
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
  /** Whether all items are given to the rules. Otherwise only plain ones are. */
  readonly takesAll: boolean;
}

export class RuledItems {
  readonly #applier: RuleApplier;
  readonly #planRows: NameFunctions["planRows"];
  readonly #changed: ChangedItems;
  readonly #takesAll: boolean;
  /** The words of RowTasks. The outcome of a row replaces the kind of its task. */
  readonly #tasks: Uint32Array;
  readonly #view: Cursor = { body: Buffer.alloc(0), table: new Uint32Array(0), row: 0 };
  /** The plans of rows, if `#hasPlans`. Otherwise they are those of the names that the table has. */
  readonly #plans: (Plan | undefined)[] = [];
  #hasPlans = false;
  #rules: CompiledRules | undefined = undefined;
  readonly #rulesOf: (CompiledRule | undefined)[] = [];
  readonly #checksOf: (SchemaCheck | undefined)[] = [];
  readonly #refusalsOf: string[] = [];
  readonly #isCookielessOf: boolean[] = [];
  readonly #flags = new FlagSearch();

  constructor({ createScanner, rowsMax, planRows, changeItems, takesAll }: RuledItemsOptions) {
    this.#takesAll = takesAll;
    this.#planRows = planRows;
    this.#applier = new RuleApplier({ changeItems });
    this.#changed = new ChangedItems(createScanner(1), rowsMax);
    this.#tasks = createRowTasks(rowsMax);
    this.#tasks[RowTasks.ItemBytesMax] = slowItemBytesMax;
  }

  /** Applies the rules to the items of rows. Returns false if all items are unruled. */
  takeRows(
    rules: CompiledRules,
    request: RequestOfRules,
    { body, scanner }: ScannedItems,
    { first, end }: Rows,
  ): boolean {
    const tasks = this.#tasks;
    const view = this.#view;
    this.#rules = rules;
    view.body = body;
    view.table = scanner.table;
    tasks[RowTasks.First] = first;
    tasks[RowTasks.Count] = end - first;
    this.#planRows(body, view.table, rules.namedPlans.slots, tasks);
    this.#hasPlans =
      this.#takesAll || rules.cookieless !== undefined || tasks[RowTasks.Unknown]! > 0;
    if (this.#hasPlans) this.#plan(rules, request);
    if (tasks[RowTasks.Ruled] === 0) return false;
    const applier = this.#applier;
    applier.begin(rules, request);
    if (tasks[RowTasks.Members]! > 0) applier.find(scanner, body, tasks);
    this.#apply();
    this.#changed.take(applier, view);
    return true;
  }

  /** Plans the rows whose names are not known, and those of cookieless events. */
  #plan(rules: CompiledRules, { isEngage }: RequestOfRules): void {
    const { namedPlans, cookieless } = rules;
    const tasks = this.#tasks;
    const view = this.#view;
    const first = tasks[RowTasks.First]!;
    const count = tasks[RowTasks.Count]!;
    const { body, table } = view;
    const flags = cookieless === undefined ? undefined : this.#flags;
    if (count > 0) flags?.begin(body, endOfRow(view, first + count - 1));
    // A new name can replace a name that another row has, so all plans are read before.
    for (let index = 0; index < count; index++) {
      const task = taskAt(index);
      view.row = Header.Words + (first + index) * Row.Words;
      this.#plans[index] = hasSlot(tasks[task + RowTask.Kind]!)
        ? namedPlans.get(tasks[task + RowTask.Slot]!)
        : rules.planOf(view, isEngage);
    }
    tasks[RowTasks.Ruled] = 0;
    tasks[RowTasks.Members] = 0;
    for (let index = 0; index < count; index++) {
      const task = taskAt(index);
      view.row = Header.Words + (first + index) * Row.Words;
      const plan = this.#plans[index];
      let kind = tasks[task + RowTask.Kind]!;
      if (kind === TaskKind.Unknown) {
        const [start, end] = [table[view.row + Row.EventStart]!, table[view.row + Row.EventEnd]!];
        const name = body.subarray(start + 1, end - 1);
        namedPlans.store(tasks[task + RowTask.Slot]!, name, plan!, plan!.task);
      }
      if (this.#takesAll || kind !== TaskKind.Rewrite) {
        kind = plan?.task.kind ?? TaskKind.Unruled;
        // `apply` finds out whether the distinct id is in the sample.
        if (kind === TaskKind.Sampled) kind = TaskKind.Apply;
        tasks[task + RowTask.Argument] = plan?.task.argument ?? 0;
        // An item without a name is dropped by the guards.
        if (plan !== undefined && flags?.isIn(view) === true && !needsMembers(kind)) {
          kind = TaskKind.List;
          tasks[task + RowTask.Argument] = 0;
        }
        const bytes = table[view.row + Row.ItemEnd]! - table[view.row + Row.ItemStart]!;
        if (needsMembers(kind) && bytes > slowItemBytesMax) kind = TaskKind.TooLarge;
      }
      tasks[task + RowTask.Kind] = kind;
      if (kind !== TaskKind.Unruled) tasks[RowTasks.Ruled]!++;
      if (needsMembers(kind)) tasks[RowTasks.Members]!++;
    }
  }

  /** Applies the rules to the rows that are not finished yet. */
  #apply(): void {
    const applier = this.#applier;
    const tasks = this.#tasks;
    const view = this.#view;
    const first = tasks[RowTasks.First]!;
    const count = tasks[RowTasks.Count]!;
    for (let index = 0; index < count; index++) {
      const task = taskAt(index);
      const kind = tasks[task + RowTask.Kind]!;
      const hasMembers = kind === TaskKind.List;
      if (!hasMembers && kind !== TaskKind.Apply) continue;
      const row = first + index;
      view.row = Header.Words + row * Row.Words;
      const outcome = applier.apply(view, this.#planOf(index)!, row, hasMembers);
      tasks[task + RowTask.Kind] = outcome;
      if (outcome > Outcome.Changed) {
        this.#rulesOf[index] = applier.rule;
        this.#refusalsOf[index] = applier.refusal;
        continue;
      }
      this.#checksOf[index] = applier.check;
      this.#isCookielessOf[index] = applier.cookielessId !== undefined;
      tasks[task + RowTask.Result] = applier.changeCount;
    }
  }

  #planOf(index: number): Plan | undefined {
    if (this.#hasPlans) return this.#plans[index];
    return this.#rules!.namedPlans.get(this.#tasks[taskAt(index) + RowTask.Slot]!);
  }

  /** Notes that no item of a slice has been given to the rules. `first` is its first row. */
  forget(first: number): void {
    const tasks = this.#tasks;
    tasks[RowTasks.First] = first;
    for (let at = RowTasks.Rows; at < tasks.length; at += RowTask.Words)
      tasks[at + RowTask.Kind] = TaskKind.Rewrite;
  }

  /** Returns what `takeRows` decided about the item of a row. */
  rulingOf(row: number): Ruling {
    return this.#tasks[this.#taskOf(row) + RowTask.Kind]! as Ruling;
  }

  /** Returns the item of a row that is changed or edited. Valid until the next call. */
  changedItem(row: number): ItemView {
    return this.#changed.item(this.#tasks[this.#taskOf(row) + RowTask.Result]! - 1);
  }

  /** Returns the schema of a row that is Valid. */
  schemaOf(row: number): CompiledSchema {
    return this.#rules!.schemaAt.get(this.#tasks[this.#taskOf(row) + RowTask.Argument]!)!;
  }

  /** Returns what the schema has found in the item of a row that is Same or Changed. */
  checkOf(row: number): SchemaCheck | undefined {
    return this.#checksOf[this.#indexOf(row)];
  }

  /** Returns the rule that filtered the item of a row, or put it into quarantine. */
  ruleOf(row: number): CompiledRule | undefined {
    return this.#rulesOf[this.#indexOf(row)];
  }

  /** Whether the changed item of a row has got the ids of a cookieless event. */
  isCookieless(row: number): boolean {
    return this.#isCookielessOf[this.#indexOf(row)]!;
  }

  /** Returns why the item of a row cannot have these ids. */
  refusalOf(row: number): string {
    return this.#refusalsOf[this.#indexOf(row)]!;
  }

  #indexOf(row: number): number {
    return row - this.#tasks[RowTasks.First]!;
  }

  #taskOf(row: number): number {
    return taskAt(this.#indexOf(row));
  }

  /**
   * Returns a plain item for the rejected events: a cookieless event without the values of its
   * visitor, any other event as it is. Returns undefined if the event must not be stored at all. The
   * item is valid until the next call.
   */
  withoutVisitor(
    rules: CompiledRules,
    request: RequestOfRules,
    { item, scanner }: { readonly item: ItemView; readonly scanner: Scanner },
  ): { readonly item: ItemView; readonly isCookieless: boolean } | undefined {
    const applier = this.#applier;
    applier.begin(rules, request);
    const { outcome, isCookieless } = applier.removeVisitor(item, scanner);
    if (outcome === Outcome.NoSalt) return undefined;
    if (outcome !== Outcome.Changed) return { item, isCookieless };
    this.#changed.take(applier, item);
    return { item: this.#changed.item(0), isCookieless };
  }
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
