// The rules that the addon applies: those that remove, hash and set members, without conditions.

import { MemberLevel, type PathEdit, setMembersMax } from "../records/found-members.ts";
import { editingRulesMax } from "../records/row-tasks.ts";
import {
  type CompiledAction,
  type CompiledRule,
  lastTopPath,
  type RuleEdit,
} from "./compiled-rule.ts";

/**
 * Returns undefined if the addon cannot apply one of the actions, or if two of them change the same
 * path.
 */
export function editsOf(actions: readonly CompiledAction[]): readonly RuleEdit[] | undefined {
  const edits = actions.flatMap((action): (RuleEdit | undefined)[] => {
    switch (action.kind) {
      case "remove":
      case "hash":
        return action.paths.map((path) => ({ path, kind: action.kind }));
      case "set":
        return action.members.map(({ path, member }) => ({ path, kind: member }));
      default:
        return [undefined];
    }
  });
  const paths = new Set(edits.map((edit) => edit?.path));
  return paths.size === edits.length &&
    edits.every((edit) => edit !== undefined && edit.path > lastTopPath)
    ? (edits as RuleEdit[])
    : undefined;
}

function isSameEdit(one: PathEdit["kind"], other: PathEdit["kind"]): boolean {
  if (typeof one === "string" || typeof other === "string") return one === other;
  return one.value === other.value;
}

/** The members that the addon edits, by path, and the rules that it can apply. */
export class NativeEdits {
  readonly ofPaths = new Map<number, PathEdit>();
  readonly #rules = new Set<CompiledRule>();

  constructor(rules: readonly CompiledRule[], levelOf: (path: number) => number) {
    for (const rule of rules.slice(0, editingRulesMax)) {
      if (rule.edits === undefined) continue;
      const bit = 1 << rule.index;
      const added = rule.edits.map(({ path, kind }): [number, PathEdit] => {
        const before = this.ofPaths.get(path);
        return [path, { kind: before?.kind ?? kind, rules: (before?.rules ?? 0) | bit }];
      });
      // Rules that do different things with a path are not combined.
      const isSame = rule.edits.every(({ kind }, at) => isSameEdit(kind, added[at]![1].kind));
      const all = new Map([...this.ofPaths, ...added]);
      const sets = [...all].filter(([, { kind }]) => typeof kind === "object");
      const isInProperties = sets.every(([path]) => levelOf(path) === MemberLevel.Properties);
      if (!isSame || !isInProperties || sets.length > setMembersMax) continue;
      this.#rules.add(rule);
      for (const [path, edit] of added) this.ofPaths.set(path, edit);
    }
  }

  has(rule: CompiledRule): boolean {
    return this.#rules.has(rule);
  }
}
