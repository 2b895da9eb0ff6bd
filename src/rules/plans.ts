// The rules and the schema that are for an event name.

import type { CompiledRule } from "./compiled-rule.ts";
import type { CompiledSchema } from "./event-schema.ts";

/** The number of rules that have a bit in `Plan.removals`. */
const removingRulesMax = 32;

/** The rules that can apply to the events of one name, in the order of the file. */
export interface Plan {
  readonly rules: readonly CompiledRule[];
  /** Whether the members of the event must be found before the rules can be applied. */
  readonly needsMembers: boolean;
  /** Whether the rules have no effect on an event without any member that they name. */
  readonly isIdleWithoutMembers: boolean;
  /** If all rules only remove members, without conditions: a bit for the index of each; else 0. */
  readonly removals: number;
  /** The schema of the event name. */
  readonly schema: CompiledSchema | undefined;
}

/** Returns whether no rule and no schema is for the events of a plan. */
export function isIdle({ rules, needsMembers }: Plan): boolean {
  return rules.length === 0 && !needsMembers;
}

/** Returns the plans of event names. */
export class Plans {
  /** The rules that name the event exactly. */
  readonly #exact = new Map<string, CompiledRule[]>();
  /** The rules for all events. */
  readonly #always: CompiledRule[] = [];
  /** The rules with globs. */
  readonly #globbed: CompiledRule[] = [];
  readonly #cutsUrls: boolean;
  readonly #readsMembersAtAll: boolean;
  readonly #other: Plan;
  readonly #schemas: ReadonlyMap<string, CompiledSchema>;

  constructor(
    rules: readonly CompiledRule[],
    {
      cutsUrls,
      schemas,
    }: {
      readonly cutsUrls: boolean;
      readonly schemas: readonly CompiledSchema[];
    },
  ) {
    this.#schemas = new Map(schemas.map((schema) => [schema.event, schema]));
    this.#cutsUrls = cutsUrls;
    this.#readsMembersAtAll = rules.some((rule) => rule.readsMembers);
    for (const rule of rules) {
      if (rule.event === undefined) this.#always.push(rule);
      else if (rule.event.globs.length > 0) this.#globbed.push(rule);
      else {
        for (const name of rule.event.exact) {
          const named = this.#exact.get(name);
          if (named === undefined) this.#exact.set(name, [rule]);
          else named.push(rule);
        }
      }
    }
    this.#other = this.#planOf(this.#always, undefined);
  }

  ofName(name: string): Plan {
    const named = this.#exact.get(name);
    const matching = this.#globbed.filter((rule) => rule.event!.matches(name));
    const schema = this.#schemas.get(name);
    if (named === undefined && matching.length === 0 && schema === undefined) return this.#other;
    const rules = [...this.#always, ...(named ?? []), ...matching];
    if (rules.length > this.#always.length) rules.sort((one, other) => one.index - other.index);
    return this.#planOf(rules, schema);
  }

  #planOf(rules: readonly CompiledRule[], schema: CompiledSchema | undefined): Plan {
    const readsAfterRename = this.#readsMembersAtAll || this.#schemas.size > 0;
    const onlyRules = schema === undefined && !this.#cutsUrls;
    let needsMembers = !onlyRules;
    let isIdleWithoutMembers = schema === undefined;
    for (const rule of rules) {
      needsMembers ||= rule.readsMembers || (rule.renames && readsAfterRename);
      isIdleWithoutMembers &&= rule.isIdleWithoutMembers;
    }
    return {
      rules,
      needsMembers,
      isIdleWithoutMembers,
      removals:
        onlyRules && rules.every(isRemoval)
          ? rules.reduce((bits, { index }) => bits | (1 << index), 0)
          : 0,
      schema,
    };
  }
}

function isRemoval({ index, removed }: CompiledRule): boolean {
  return index < removingRulesMax && removed !== undefined;
}

/** Returns the rules that remove a path and do nothing else, a bit for the index of each. */
export function removedByOf(rules: readonly CompiledRule[]): (path: number) => number {
  const removedBy: number[] = [];
  for (const { index, removed } of rules.filter(isRemoval))
    for (const path of removed!) removedBy[path] = (removedBy[path] ?? 0) | (1 << index);
  return (path) => removedBy[path] ?? 0;
}
