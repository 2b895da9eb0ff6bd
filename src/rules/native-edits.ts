// The rules that the addon applies: those that remove, hash and set members, without conditions.

import {
  MemberLevel,
  type MemberName,
  type PathEdit,
  setMembersMax,
} from "../records/found-members.ts";
import { editingRulesMax } from "../records/row-tasks.ts";
import { type CompiledRule, lastTopPath } from "./compiled-rule.ts";

type Edit = PathEdit["edit"];

/** The members that the addon edits, by path, and the rules that it can apply. */
export class NativeEdits {
  readonly ofPaths: ReadonlyMap<number, PathEdit> = new Map();
  readonly #rules = new Set<CompiledRule>();

  /** `names`: the names of the paths. */
  constructor(rules: readonly CompiledRule[], names: readonly MemberName[]) {
    for (const rule of rules.slice(0, editingRulesMax)) {
      const edits = editsOf(rule, names);
      if (edits === undefined) continue;
      const all = new Map(this.ofPaths);
      for (const [path, edit] of edits)
        all.set(path, { edit, rules: (all.get(path)?.rules ?? 0) | (1 << rule.index) });
      // Rules that do different things with a path are not combined.
      const isSame = [...this.ofPaths].every(([path, { edit }]) =>
        isSameEdit(edit, all.get(path)!.edit),
      );
      const sets = [...all.values()].filter(({ edit }) => typeof edit === "object");
      if (!isSame || sets.length > setMembersMax) continue;
      this.#rules.add(rule);
      this.ofPaths = all;
    }
  }

  has(rule: CompiledRule): boolean {
    return this.#rules.has(rule);
  }
}

/**
 * Returns what a rule does with members, by path. Returns undefined if the addon cannot do it, or if
 * the rule changes a path twice.
 */
function editsOf(
  { mode, isUnconditional, actions }: CompiledRule,
  names: readonly MemberName[],
): ReadonlyMap<number, Edit> | undefined {
  if (mode !== "enforce" || !isUnconditional) return undefined;
  const edits = new Map<number, Edit>();
  for (const action of actions) {
    if (action.kind !== "remove" && action.kind !== "hash" && action.kind !== "set")
      return undefined;
    const added: readonly (readonly [number, Edit])[] =
      action.kind === "set"
        ? action.members.map(({ path, text }) => [path, text])
        : action.paths.map((path) => [path, action.kind]);
    for (const [path, edit] of added) {
      const isInProperties = names[path - 1]!.level === MemberLevel.Properties;
      if (edits.has(path) || path <= lastTopPath) return undefined;
      if (typeof edit === "object" && !isInProperties) return undefined;
      edits.set(path, edit);
    }
  }
  return edits;
}

/** Equal texts are the same part of the texts of the rules. */
function isSameEdit(one: Edit, other: Edit): boolean {
  if (typeof one === "string" || typeof other === "string") return one === other;
  return one.nameStart === other.nameStart;
}
