// Finds rules that cannot have the effect that their author expects. Reports only certain
// conflicts: two rules that overlap for some events only are no conflict.

import { readProperties } from "./compile.ts";
import {
  type Action,
  type Match,
  type PropertyPath,
  pathsOf,
  type Rule,
  splitPath,
} from "./rules-file.ts";
import { coversPattern, isGlob, TextPatterns } from "./text-patterns.ts";

interface Conflict {
  /** The index of the rule to change. */
  readonly index: number;
  /** The member of the rule to change, by its name in the file. */
  readonly action: string;
  readonly message: string;
}

type Kind = Action["kind"];

/** The event names of a rule. */
interface EventNames {
  readonly patterns: readonly string[];
  readonly globs: readonly string[];
  readonly matcher: TextPatterns;
}

export function findConflicts(rules: readonly Rule[]): Conflict[] {
  const names = rules.map(({ match }) => match.event && eventNames(match.event));
  return rules.flatMap((rule, index) => [
    ...conflictsInside(rule).map((found) => ({ index, ...found })),
    ...(rule.mode === "enforce" ? conflictsWithEarlier(rules, names, index) : []),
  ]);
}

function eventNames(patterns: readonly string[]): EventNames {
  return { patterns, globs: patterns.filter(isGlob), matcher: new TextPatterns(patterns) };
}

/** Pairs of actions that must not name the same property, and why. */
const exclusive: readonly (readonly [first: Kind, second: Kind, why: string])[] = [
  ["remove", "hash", "a removed property cannot be hashed"],
  ["remove", "cut", "a removed property cannot be cut"],
  ["remove", "set", "set would add it again"],
  ["hash", "cut", "cut would shorten the hash"],
  ["hash", "set", "set would replace the hash"],
  ["cut", "set", "set would replace the cut text"],
  ["keepOnly", "remove", "keep_only keeps it"],
];

function conflictsInside({ actions }: Rule): Omit<Conflict, "index">[] {
  const byKind = new Map(actions.map((action) => [action.kind, pathsOf(action)]));
  const twice = exclusive.flatMap(([first, second, why]) => {
    const other = new Set(byKind.get(second));
    const both = (byKind.get(first) ?? []).filter((path) => other.has(path));
    const names = `${memberOf(first)} and ${memberOf(second)}`;
    return both.map((path) => ({
      action: memberOf(second),
      message: `${names} both name ${path}: ${why}`,
    }));
  });
  const kept = byKind.get("keepOnly");
  const lost = (["hash", "cut"] as const).flatMap((kind) =>
    (byKind.get(kind) ?? [])
      .filter((path) => kept !== undefined && isRemovedByKeepOnly(path, kept))
      .map((path) => ({
        action: memberOf(kind),
        message: `keep_only removes ${path}, so ${kind} has no effect: add ${path} to keep_only`,
      })),
  );
  return [...twice, ...lost];
}

function conflictsWithEarlier(
  rules: readonly Rule[],
  names: readonly (EventNames | undefined)[],
  index: number,
): (Conflict & { readonly index: number })[] {
  const rule = rules[index]!;
  for (let at = 0; at < index; at++) {
    const earlier = rules[at]!;
    if (earlier.mode !== "enforce" || !hasFixedConditions(earlier.match)) continue;
    const { lane } = earlier.match;
    if (lane !== undefined && lane !== rule.match.lane) continue;
    if (!coversNames(names[at], names[index])) continue;
    const between = rules.slice(at + 1, index);
    if (changesMatch(between, names[index])) continue;
    const ending = earlier.actions.find(({ kind }) => kind === "drop" || kind === "quarantine");
    if (ending !== undefined) {
      const verb = ending.kind === "drop" ? "drops" : "quarantines";
      const message = `it never matches, because rule ${earlier.name} ${verb} the same events earlier: remove it or put it first`;
      return [{ index, action: "name", message }];
    }
    const lost = lostEarlier(earlier, between, rule);
    if (lost !== undefined) return [{ index, ...lost }];
  }
  return [];
}

/** The effect of a rule on a property that an earlier rule has removed or hashed in all its events. */
function lostEarlier(
  earlier: Rule,
  between: readonly Rule[],
  rule: Rule,
): Omit<Conflict, "index"> | undefined {
  for (const { kind, path } of rule.actions.flatMap(changedPaths)) {
    const loser = earlier.actions.find(
      (action) =>
        (action.kind === "remove" && action.paths.includes(path)) ||
        (action.kind === "keepOnly" && isRemovedByKeepOnly(path, action.paths)) ||
        (action.kind === "hash" && kind === "cut" && action.paths.includes(path)),
    );
    if (loser === undefined) continue;
    const isSetAgain = [earlier, ...between, rule].some(({ actions }) =>
      actions.some((action) => action.kind === "set" && action.values.has(path)),
    );
    if (isSetAgain) continue;
    const why =
      loser.kind === "hash"
        ? `hashed ${path} before, so cut would shorten the hash`
        : `removed ${path} before (${memberOf(loser.kind)}), so ${kind} has no effect`;
    const message = `rule ${earlier.name} has ${why}: remove it here, or put this rule first`;
    return { action: memberOf(kind), message };
  }
  return undefined;
}

function changedPaths(action: Action): { kind: "hash" | "cut"; path: PropertyPath }[] {
  if (action.kind !== "hash" && action.kind !== "cut") return [];
  return pathsOf(action).map((path) => ({ kind: action.kind, path }));
}

/** Returns whether every event name that matches `others` matches `names`. */
function coversNames(names: EventNames | undefined, others: EventNames | undefined): boolean {
  if (names === undefined) return true;
  return (
    others?.patterns.every((other) =>
      isGlob(other)
        ? names.globs.some((glob) => coversPattern(glob, other))
        : names.matcher.matches(other),
    ) === true
  );
}

/** Whether no rule can change that an event matches, except by another name. */
function hasFixedConditions({ sdk, sdkVersion, bot, properties }: Match): boolean {
  const readsProperties = sdk ?? sdkVersion ?? bot ?? properties;
  return readsProperties === undefined;
}

/** Whether one of the rules can give an event a name that matches. */
function changesMatch(rules: readonly Rule[], names: EventNames | undefined): boolean {
  return rules.some(({ actions }) =>
    actions.some(
      (action) =>
        action.kind === "rename" && (names === undefined || names.matcher.matches(action.event)),
    ),
  );
}

const readByPenstock: ReadonlySet<string> = new Set(readProperties);

/** `keep_only` keeps the properties that Penstock reads, with all their members. */
function isRemovedByKeepOnly(path: PropertyPath, kept: readonly PropertyPath[]): boolean {
  const isInSet = splitPath(path)?.object !== undefined;
  return !isInSet && !kept.includes(path) && !readByPenstock.has(path);
}

function memberOf(kind: Kind): string {
  return kind === "keepOnly" ? "keep_only" : kind;
}
