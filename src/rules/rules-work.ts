// Measures of the work that a rules file causes for each event.

import { pathsOf, type Rule } from "./rules-file.ts";

/** Returns the number of globs in the conditions of all rules. */
export function globsOf(rules: readonly Rule[]): number {
  const patterns = rules.flatMap(({ match: { event = [], sdk = [], sdkVersion = [] } }) => [
    ...event,
    ...sdk,
    ...sdkVersion,
  ]);
  return patterns.filter((pattern) => pattern.includes("*")).length;
}

/** Returns the number of globs, conditions on properties and paths of actions in all rules. */
export function stepsOf(rules: readonly Rule[]): number {
  return rules.reduce(
    (sum, { match, actions }) =>
      sum + (match.properties?.size ?? 0) + actions.flatMap(pathsOf).length,
    globsOf(rules),
  );
}

/** Replaces characters that no record has. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
