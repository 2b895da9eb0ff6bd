// The work of rules for each event: the limit of a rules file, and the estimate for a body.

import { Buffer } from "node:buffer";
import { stepsMax } from "./limits.ts";
import {
  type Action,
  type PropertyPath,
  pathsOf,
  type Rule,
  type RulesFile,
} from "./rules-file.ts";
import { hasInnerPart, isGlob } from "./text-patterns.ts";

/** The steps of a `rename` or `keep_only`, and of a path of `hash`, `cut` or `set`. */
export const changeSteps = 5;
/** The steps of a glob with a part between two `*`. */
export const innerGlobSteps = 8;
/** Bytes of a text that is set, and of its name, that are one more step. */
const bytesPerStep = 20;

interface StepsOfFile {
  /** The steps of the events with the most steps. */
  readonly total: number;
  /** The steps of each rule for these events. */
  readonly ofRules: readonly number[];
}

/**
 * Returns the steps of the event name with the most steps. Each rule, condition, glob and path is
 * one step, if no constant above is for it. A step takes about 40 ns for the shortest event, and at
 * most in proportion longer for longer events: `bench/rules/worst.ts` measures the slowest ones. A
 * rule for exact names has steps for these names only, unless a rule gives one of them to events.
 */
export function stepsOf(rules: readonly Rule[]): StepsOfFile {
  const steps = rules.map(stepsOfRule);
  const given = new Set(
    rules.flatMap(({ actions }) =>
      actions.flatMap((action) => (action.kind === "rename" ? [action.event] : [])),
    ),
  );
  const isForAny = rules.map(
    ({ match }) => match.event?.some((name) => isGlob(name) || given.has(name)) ?? true,
  );
  const byName = new Map<string, number>();
  for (const [index, { match }] of rules.entries())
    if (!isForAny[index])
      for (const name of new Set(match.event))
        byName.set(name, (byName.get(name) ?? 0) + steps[index]!);
  const [slowest = ""] = [...byName].toSorted((one, other) => other[1] - one[1])[0] ?? [];
  const ofRules = rules.map(({ match }, index) =>
    isForAny[index] || match.event!.includes(slowest) ? steps[index]! : 0,
  );
  return { total: sum(ofRules), ofRules };
}

/** Returns why the rules have too many steps; undefined if they have not. */
export function tooManySteps(
  rules: readonly Rule[],
): { readonly slowest: number; readonly message: string } | undefined {
  const { total, ofRules } = stepsOf(rules);
  if (total <= stepsMax) return undefined;
  const order = [...rules.keys()].toSorted((one, other) => ofRules[other]! - ofRules[one]!);
  const shown = order
    .slice(0, slowestShown)
    .map((index) => `${rules[index]!.name} ${ofRules[index]}`);
  const others = rules.length > shown.length ? ", …" : "";
  return {
    slowest: order[0]!,
    message: `the rules take up to ${total} steps for an event (${shown.join(", ")}${others}); the maximum is ${stepsMax}, so that no batch times out. Name the events of a rule in match.event, use exact names or globs with one *, and do the same with fewer rules and paths`,
  };
}

const slowestShown = 3;

function stepsOfRule({ match, actions }: Rule): number {
  const { event = [], sdk = [], sdkVersion = [], properties, ...others } = match;
  const conditions = [match.sdk, match.sdkVersion, ...Object.values(others)];
  return sum([
    1,
    conditions.filter((one) => one !== undefined).length,
    ...[...event, ...sdk, ...sdkVersion].filter(isGlob).map(ofGlob),
    ...[...(properties ?? [])].flatMap(([path, test]) => [
      ofPath(path),
      ...(test.kind === "like" ? test.patterns.filter(isGlob).map(ofGlob) : []),
    ]),
    ...actions.map(ofAction),
  ]);
}

function ofGlob(glob: string): number {
  return hasInnerPart(glob) ? innerGlobSteps : 1;
}

/** The members that rules have added to `$set` are read one by one. */
function ofPath(path: PropertyPath): number {
  return path === "$set" || path === "$set_once" ? changeSteps : 1;
}

function ofAction(action: Action): number {
  switch (action.kind) {
    case "drop":
    case "quarantine":
      return 0;
    case "sample":
      return 1;
    case "keepOnly":
    case "rename":
      return changeSteps;
    case "remove":
      return sum(action.paths.map(ofPath));
    case "hash":
    case "cut":
      return pathsOf(action).length * changeSteps;
    case "set":
      return sum([...action.values].map(([path, value]) => ofSet(path, value)));
  }
}

function ofSet(path: PropertyPath, value: unknown): number {
  const bytes = Buffer.byteLength(path) + Buffer.byteLength(JSON.stringify(value));
  return changeSteps + Math.floor(bytes / bytesPerStep);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** Work of a step, in copied bytes. */
const bytesOfStep = 60;
/** Work of the HMAC of a text with escapes, in copied bytes. */
const bytesOfHash = 2_048;
/** Work of an event for `cookieless`, in copied bytes. */
const bytesOfCookieless = 1_200;
/** Work of finding members of an event and of writing it again, per byte, in copied bytes. */
const bytesOfChangedByte = 1;
/** The same if JavaScript reads values, such as the texts that a schema has a pattern for. */
const bytesOfReadByte = 4;

/** Work in bytes that could be copied in the same time. */
interface WorkEstimate {
  readonly perEvent: number;
  readonly perByte: number;
}

/** `rewrites`: whether the rules can find or change members of events. */
export function estimateOf(
  { rules, privacy, schemas }: RulesFile,
  rewrites: boolean,
): WorkEstimate {
  const actions = rules.flatMap((rule) => rule.actions);
  const hashes = actions.flatMap((action) => (action.kind === "hash" ? action.paths : []));
  const readsValues =
    schemas.length > 0 ||
    privacy.cookieless ||
    privacy.cutFragment ||
    privacy.cutQuery.length > 0 ||
    actions.some(({ kind }) => kind === "keepOnly" || kind === "cut");
  const perByte = readsValues ? bytesOfReadByte : bytesOfChangedByte;
  return {
    perEvent:
      stepsOf(rules).total * bytesOfStep +
      hashes.length * bytesOfHash +
      (privacy.cookieless ? bytesOfCookieless : 0),
    perByte: rewrites ? perByte : 0,
  };
}
