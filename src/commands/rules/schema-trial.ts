// What the schemas of a rules file find in stored events, for `penstock rules check --against`.

import type { RuleApplier } from "../../rules/apply.ts";
import type { CompiledSchema, SchemaCheck } from "../../rules/event-schema.ts";
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

export class SchemaTrial {
  readonly #results: Map<CompiledSchema, SchemaTrialResult>;

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
  take(applier: RuleApplier): void {
    if (applier.check !== undefined) this.#count(applier.check);
  }

  #count({ schema, errors }: SchemaCheck): void {
    const result = this.#results.get(schema)!;
    if (errors.length === 0) result.valid++;
    else result.invalid++;
    for (const error of errors)
      if (result.errors.has(error) || result.errors.size < errorsMax)
        result.errors.set(error, (result.errors.get(error) ?? 0) + 1);
  }
}
