// What the schemas of a rules file find in stored events, for `penstock rules check --against`.

import { Buffer } from "node:buffer";
import { isPlain } from "../../records/item-view.ts";
import { createNativeScanner } from "../../records/native.ts";
import { Header, ScanStatus } from "../../records/table.ts";
import { Outcome, type RuleApplier } from "../../rules/apply.ts";
import type { CompiledSchema } from "../../rules/event-schema.ts";
import type { SchemaMode } from "../../rules/rules-file.ts";

export interface SchemaTrialResult {
  readonly event: string;
  readonly version: number;
  readonly mode: SchemaMode;
  valid: number;
  invalid: number;
  /** Numbers of events by error. */
  readonly errors: Map<string, number>;
}

const errorsMax = 100;
const opening = Buffer.from('{"batch":[');
const closing = Buffer.from("]}");

export class SchemaTrial {
  readonly #results: Map<CompiledSchema, SchemaTrialResult>;
  readonly #scanner = createNativeScanner(1);
  /** Changed events, which are checked when the applier has no other event. */
  readonly #changed: { readonly schema: CompiledSchema; readonly body: Buffer }[] = [];

  constructor(schemas: readonly CompiledSchema[]) {
    this.#results = new Map(
      schemas.map((schema) => {
        const { event, version, mode } = schema;
        return [schema, { event, version, mode, valid: 0, invalid: 0, errors: new Map() }];
      }),
    );
  }

  get results(): SchemaTrialResult[] {
    return [...this.#results.values()];
  }

  /** Takes the last event of the applier. */
  take(applier: RuleApplier, outcome: Outcome): void {
    const { schema } = applier;
    if (schema === undefined || outcome > Outcome.Changed) return;
    if (outcome === Outcome.Same) {
      this.#count(schema, applier.checkSchema());
      return;
    }
    const text = Buffer.allocUnsafe(applier.bytesMax);
    const end = applier.write(text, 0);
    this.#changed.push({ schema, body: Buffer.concat([opening, text.subarray(0, end), closing]) });
  }

  /** Checks the changed events. The applier must have no other event. */
  finish(applier: RuleApplier): void {
    const { table } = this.#scanner;
    for (const { schema, body } of this.#changed.splice(0)) {
      const item = { body, table, row: Header.Words };
      if (this.#scanner.scan(body) === ScanStatus.Ok && isPlain(item))
        this.#count(schema, applier.checkChanged(schema, item));
    }
  }

  #count(schema: CompiledSchema, errors: readonly string[]): void {
    const result = this.#results.get(schema)!;
    if (errors.length === 0) result.valid++;
    else result.invalid++;
    for (const error of errors)
      if (result.errors.has(error) || result.errors.size < errorsMax)
        result.errors.set(error, (result.errors.get(error) ?? 0) + 1);
  }
}
