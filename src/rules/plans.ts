// The rules and the schema that are for an event name.

import type { NameTask } from "../records/name-table.ts";
import { TaskKind } from "../records/row-tasks.ts";
import type { CompiledRule } from "./compiled-rule.ts";
import type { CompiledSchema } from "./event-schema.ts";
import type { NativeEdits } from "./native-edits.ts";

/** The rules that can apply to the events of one name, in the order of the file. */
export interface Plan {
  readonly rules: readonly CompiledRule[];
  /** What to do with plain items of the name. */
  readonly task: NameTask;
  /** The schema of the event name. */
  readonly schema: CompiledSchema | undefined;
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
  readonly #isCookieless: boolean;
  readonly #edits: NativeEdits;
  readonly #readsMembersAtAll: boolean;
  readonly #other: Plan;
  readonly #schemas: ReadonlyMap<string, CompiledSchema>;

  constructor(
    rules: readonly CompiledRule[],
    {
      cutsUrls,
      isCookieless,
      edits,
      schemas,
    }: {
      readonly cutsUrls: boolean;
      readonly isCookieless: boolean;
      readonly edits: NativeEdits;
      readonly schemas: readonly CompiledSchema[];
    },
  ) {
    this.#schemas = new Map(schemas.map((schema) => [schema.event, schema]));
    this.#cutsUrls = cutsUrls;
    this.#isCookieless = isCookieless;
    this.#edits = edits;
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
    return { rules, task: this.#taskOf(rules, schema), schema };
  }

  #taskOf(rules: readonly CompiledRule[], schema: CompiledSchema | undefined): NameTask {
    if (rules.length > 0 && schema === undefined && !this.#cutsUrls) {
      if (!this.#isCookieless && rules.every((rule) => this.#edits.has(rule))) {
        const argument = rules.reduce((bits, { index }) => bits | (1 << index), 0);
        return { kind: TaskKind.Edit, argument };
      }
      if (rules.every(isSample))
        return { kind: TaskKind.Sampled, argument: Math.min(...rules.map(highestInSample)) };
    }
    if (schema !== undefined || this.#cutsUrls || this.#readMembers(rules)) {
      const kind = this.#areIdleWithoutMembers(rules, schema) ? TaskKind.ListIfAny : TaskKind.List;
      return { kind, argument: schema?.checks ?? 0 };
    }
    return { kind: rules.length > 0 ? TaskKind.Apply : TaskKind.Unruled, argument: 0 };
  }

  /** Whether the rules read members, or those or the schema of a new name can. */
  #readMembers(rules: readonly CompiledRule[]): boolean {
    const readsAfterRename = this.#readsMembersAtAll || this.#schemas.size > 0;
    return rules.some((rule) => rule.readsMembers || (rule.renames && readsAfterRename));
  }

  /** Whether a valid event without listed members is stored as it is. */
  #areIdleWithoutMembers(
    rules: readonly CompiledRule[],
    schema: CompiledSchema | undefined,
  ): boolean {
    if (schema === undefined) return rules.every((rule) => rule.isIdleWithoutMembers);
    return rules.length === 0 && !this.#cutsUrls && !this.#isCookieless;
  }
}

/** Whether the rule only samples, without conditions. */
function isSample({ mode, isUnconditional, actions }: CompiledRule): boolean {
  const isAlone = actions.length === 1 && actions[0]!.kind === "sample";
  return isAlone && isUnconditional && mode === "enforce" && highestInSample({ actions }) >= 0;
}

/** Returns the highest hash in the sample of a rule; -1 if the sample is empty. */
function highestInSample({ actions }: Pick<CompiledRule, "actions">): number {
  const [action] = actions;
  return action?.kind === "sample" ? Math.ceil(action.limit) - 1 : -1;
}
