// Applies rules to stored events without changing anything, and counts what each rule would do.

import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { Ascii } from "../../platform/base/ascii.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { isPlain } from "../../records/item-view.ts";
import { createNativeScanner } from "../../records/native.ts";
import { createRowTasks, listRow, needsMembers, RowTasks } from "../../records/row-tasks.ts";
import { Header, Row, ScanStatus } from "../../records/table.ts";
import { Outcome, RuleApplier } from "../../rules/apply.ts";
import { type CompiledRules, compileRules } from "../../rules/compile.ts";
import { RuleEffect } from "../../rules/compiled-rule.ts";
import {
  type PropertyPath,
  type Rule,
  type RuleMode,
  type RulesFile,
  splitPath,
} from "../../rules/rules-file.ts";
import { SchemaTrial } from "./schema-trial.ts";

/** Sampled out counts as dropped. */
type Effect = Exclude<RuleEffect, "sampled_out">;

export interface TrialExample {
  readonly uuid: unknown;
  readonly event: unknown;
  readonly received_at: unknown;
  /** The values of the properties that the rule's conditions name, except hidden ones. */
  readonly properties: Readonly<Record<PropertyPath, unknown>>;
}

interface RuleResult {
  readonly name: string;
  readonly mode: RuleMode;
  readonly events: Record<Effect, number>;
  /** The stored bytes of these events. */
  bytes: number;
  readonly examples: TrialExample[];
}

const ruleEffects = Object.entries(RuleEffect) as [RuleEffect, number][];
const examplesMax = 3;
const shownCharsMax = 60;
const opening = Buffer.from('{"batch":[');
const closing = Buffer.from("]}");

export class RulesTrial {
  readonly results: readonly RuleResult[];
  /** Events whose URLs the privacy section would cut. */
  readonly privacy = { changed: 0, bytes: 0 };
  readonly schemas: SchemaTrial;
  events = 0;
  bytes = 0;
  readonly #file: RulesFile;
  readonly #rules: CompiledRules;
  readonly #ofPrivacy: CompiledRules;
  /** The counts of each rule before the last event. */
  readonly #counted: readonly Float64Array[];
  readonly #scanner = createNativeScanner();
  readonly #applier = new RuleApplier(this.#scanner);
  readonly #hidden: (path: PropertyPath) => boolean;

  constructor(file: RulesFile) {
    // No hash is printed, so the project's secret is not needed.
    const context = { version: 1, secret: randomBytes(32) };
    // Stored events have no User-Agent from which the id of a cookieless event could be made.
    const tried = { ...file, privacy: { ...file.privacy, cookieless: false } };
    this.#file = file;
    this.#rules = compileRules(tried, context);
    this.schemas = new SchemaTrial(this.#rules.schemas);
    this.#ofPrivacy = compileRules({ ...tried, rules: [], schemas: [] }, context);
    this.#counted = this.#rules.rules.map(({ counts }) => counts.slice());
    this.#hidden = hiddenBy(file.rules);
    this.results = file.rules.map(({ name, mode }) => ({
      name,
      mode,
      bytes: 0,
      examples: [],
      events: { dropped: 0, quarantined: 0, changed: 0 },
    }));
  }

  /** Applies the rules to lines, each with a line feed at its end. Skips lines that are not JSON. */
  take(lines: Buffer, lane: Lane): void {
    if (lines.length === 0) return;
    const body = Buffer.concat([opening, lines.subarray(0, -1), closing]);
    for (let at = body.indexOf(Ascii.LineFeed); at !== -1; at = body.indexOf(Ascii.LineFeed, at))
      body[at] = Ascii.Comma;
    const { table } = this.#scanner;
    if (this.#scanner.scan(body) !== ScanStatus.Ok) return;
    const plainForms: Buffer[] = [];
    for (let left = table[Header.ItemCount]!; left > 0; ) {
      const rows = table[Header.RowCount]!;
      if (rows === 0) break;
      this.#takeRows(body, lane, plainForms);
      left -= rows;
      if (left > 0) this.#scanner.scanMore(body);
    }
    for (const one of plainForms)
      if (this.#scanner.scan(one) === ScanStatus.Ok) this.#takeRows(one, lane, []);
  }

  /** Takes the plain items. Adds the plain forms of the others to `plainForms`. */
  #takeRows(body: Buffer, lane: Lane, plainForms: Buffer[]): void {
    const { table } = this.#scanner;
    const view = { body, table, row: 0 };
    const rowCount = table[Header.RowCount]!;
    for (let row = 0; row < rowCount; row++) {
      view.row = Header.Words + row * Row.Words;
      if (!isPlain(view)) {
        plainForms.push(this.#plainForm(view));
        continue;
      }
      this.events++;
      this.bytes += bytesOf(view);
    }
    for (const rules of [this.#ofPrivacy, this.#rules]) {
      const applier = this.#applier;
      applier.begin(rules, { lane, isEngage: false, isBot: false });
      const planned = Array.from({ length: rowCount }, (_, row) => {
        view.row = Header.Words + row * Row.Words;
        return isPlain(view) ? rules.planOf(view, false) : undefined;
      });
      const tasks = createRowTasks(rowCount);
      tasks[RowTasks.Count] = rowCount;
      for (const [row, plan] of planned.entries())
        if (plan !== undefined && needsMembers(plan.task.kind))
          listRow(tasks, row, plan.schema?.checks);
      applier.find(this.#scanner, body, tasks);
      for (const [row, plan] of planned.entries()) {
        if (plan === undefined) continue;
        const hasMembers = needsMembers(plan.task.kind);
        view.row = Header.Words + row * Row.Words;
        const outcome = applier.apply(view, plan, row, hasMembers);
        if (rules === this.#rules) {
          this.#count(view);
          this.schemas.take(applier);
        } else if (outcome === Outcome.Changed) {
          this.privacy.changed++;
          this.privacy.bytes += bytesOf(view);
        }
      }
    }
  }

  /** Returns an item in plain form, in brackets, as the gateway gives it to the rules. */
  #plainForm({ body, table, row }: { body: Buffer; table: Uint32Array; row: number }): Buffer {
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    const text = Buffer.allocUnsafe(opening.length + end - start + closing.length);
    const length = this.#scanner.normalise(body, start, end, text, opening.copy(text));
    if (length < 0) throw new Error("cannot normalise a stored event");
    const itemEnd = opening.length + length;
    return text.subarray(0, itemEnd + closing.copy(text, itemEnd));
  }

  /** Finds the rules whose counts the last event has raised. */
  #count(view: { body: Buffer; table: Uint32Array; row: number }): void {
    for (const { index, counts } of this.#rules.rules) {
      const counted = this.#counted[index]!;
      for (const [effect, at] of ruleEffects) {
        if (counts[at] === counted[at]) continue;
        counted[at] = counts[at]!;
        const result = this.results[index]!;
        result.events[effect === "sampled_out" ? "dropped" : effect]++;
        result.bytes += bytesOf(view);
        if (result.examples.length < examplesMax)
          result.examples.push(this.#example(view, this.#file.rules[index]!));
      }
    }
  }

  #example(
    { body, table, row }: { body: Buffer; table: Uint32Array; row: number },
    { match }: Rule,
  ): TrialExample {
    const line = body.toString("utf8", table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!);
    const record = JSON.parse(line) as Record<string, unknown>;
    const { uuid, event, received_at } = record;
    const shown = [...(match.properties?.keys() ?? [])].filter((path) => !this.#hidden(path));
    const properties = shown.map((path) => [path, shownValue(valueAt(record, path))] as const);
    return { uuid, event, received_at, properties: Object.fromEntries(properties) };
  }
}

function bytesOf({ table, row }: { table: Uint32Array; row: number }): number {
  // With the line feed.
  return table[row + Row.ItemEnd]! - table[row + Row.ItemStart]! + 1;
}

/** Returns whether a rule removes or hashes a property, so that no example may show its value. */
function hiddenBy(rules: readonly Rule[]): (path: PropertyPath) => boolean {
  const actions = rules.flatMap((rule) => rule.actions);
  const named = new Set(
    actions.flatMap((action) =>
      action.kind === "remove" || action.kind === "hash" ? action.paths : [],
    ),
  );
  const kept = actions.flatMap((action) =>
    action.kind === "keepOnly" ? [new Set(action.paths)] : [],
  );
  return (path) => {
    const whole = splitPath(path)?.object ?? path;
    return named.has(path) || named.has(whole) || kept.some((paths) => !paths.has(path));
  };
}

function valueAt(record: Record<string, unknown>, path: PropertyPath): unknown {
  const { object, name } = splitPath(path)!;
  const properties = (record["properties"] ?? {}) as Record<string, unknown>;
  const objects = object === undefined ? [properties] : [properties[object], record[object]];
  for (const one of objects as (Record<string, unknown> | undefined)[])
    if (one !== undefined && Object.hasOwn(one, name)) return one[name];
  return undefined;
}

function shownValue(value: unknown): unknown {
  if (typeof value === "object" && value !== null) return "…";
  return typeof value === "string" && value.length > shownCharsMax
    ? `${value.slice(0, shownCharsMax)}…`
    : value;
}
