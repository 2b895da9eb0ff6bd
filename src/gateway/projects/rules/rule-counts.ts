// The numbers of events on which the rules and schemas of projects had an effect, for the metrics. A
// counter belongs to the name of a rule, so it continues if the rules get a new version.

import { BoundedCounters, otherValue } from "../../../platform/metrics/bounded-counters.ts";
import type { Sample } from "../../../platform/metrics/table.ts";
import type { RulesCounters } from "../../../rules/compile.ts";
import { effectOf, RuleEffect } from "../../../rules/compiled-rule.ts";
import { SchemaResult } from "../../../rules/event-schema.ts";

/** Maximum number of rules with a counter of their own, and the same of schemas, in one process. */
const countersMaxDefault = 1_000;

const schemaResults = Object.keys(SchemaResult) as SchemaResult[];

export class RuleCounts {
  readonly #rules: BoundedCounters<RuleEffect>;
  readonly #schemas: BoundedCounters<SchemaResult>;

  constructor(countersMax = countersMaxDefault) {
    this.#rules = new BoundedCounters({ label: "effect", values: RuleEffect, countersMax });
    this.#schemas = new BoundedCounters({ label: "result", values: SchemaResult, countersMax });
  }

  of(project: string): RulesCounters {
    return {
      ofRule: ({ name, mode, actions }) =>
        this.#rules.of(
          { project, rule: name, mode },
          actions.map(({ kind }) => effectOf(kind)),
          { project: otherValue, rule: otherValue, mode },
        ),
      ofSchema: ({ event, mode }) =>
        this.#schemas.of({ project, event, mode }, schemaResults, {
          project: otherValue,
          event: otherValue,
          mode,
        }),
    };
  }

  /** Must be called only if the project was removed. */
  forget(project: string): void {
    this.#rules.remove("project", project);
    this.#schemas.remove("project", project);
  }

  get ruleSamples(): Sample[] {
    return this.#rules.samples();
  }

  get schemaSamples(): Sample[] {
    return this.#schemas.samples();
  }
}
