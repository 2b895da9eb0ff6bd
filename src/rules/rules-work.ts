// Measures of the work that a rules file causes for each event.

import type { PropertyPath, Rule } from "./rules-file.ts";

/** Returns the number of globs in the conditions of all rules. */
export function globsOf(rules: readonly Rule[]): number {
  const patterns = rules.flatMap(({ match: { event = [], sdk = [], sdkVersion = [] } }) => [
    ...event,
    ...sdk,
    ...sdkVersion,
  ]);
  return patterns.filter((pattern) => pattern.includes("*")).length;
}

/** Returns how often the rules hash or cut the value of each path. */
export function valuePassesOf(rules: readonly Rule[]): ReadonlyMap<PropertyPath, number> {
  const passes = new Map<PropertyPath, number>();
  for (const action of rules.flatMap(({ actions }) => actions)) {
    const isHash = action.kind === "hash";
    if (!isHash && action.kind !== "cut") continue;
    for (const sent of isHash ? action.paths : action.bytes.keys()) {
      const path = storableText(sent);
      passes.set(path, (passes.get(path) ?? 0) + 1);
    }
  }
  return passes;
}

/** Replaces characters that no record has. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
