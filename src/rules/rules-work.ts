// Measures of the work that a rules file causes for each event.

import { Buffer } from "node:buffer";
import { stepsMax } from "./limits.ts";
import { hasInnerPart, wordsOfGlobs } from "./pattern.ts";
import { type Action, pathsOf, type Rule } from "./rules-file.ts";

/**
 * The steps of each part of a file, for one event. A step is the work that takes about 4 ns for an
 * event of 55 bytes, the shortest one. An event that needs more bytes for a part has more time for
 * it, as a body has fewer such events. `bench/rules/worst.ts` measures the slowest events.
 */
export const stepsOfPart = {
  rule: 10,
  /** Of a rule whose `event` has a glob, because each new name needs a list of its rules. */
  ruleWithGlob: 10,
  exactTexts: 5,
  glob: 4,
  /** Of all globs of a condition that have a part between two `*`. */
  innerGlobs: 100,
  /** Of each 32 characters of such globs. */
  innerGlobWord: 40,
  bot: 12,
  exists: 4,
  equals: 8,
  sample: 10,
  rename: 37,
  remove: 2,
  keepOnly: 20,
  hash: 60,
  cut: 5,
  /** Of a path that several rules cut. */
  cutAgain: 50,
  set: 25,
  /** Of each 4 bytes of a text that is set, and of its name. */
  setText: 1,
  cookieless: 200,
} as const;

interface StepsOfFile {
  /** The steps of the events with the most steps. */
  readonly total: number;
  /** The steps of each rule for these events. */
  readonly ofRules: readonly number[];
}

/**
 * Returns the steps of the event name with the most steps. The rules for exact names count only for
 * one of these names, and for all names that rules give to events.
 */
export function stepsOf(
  rules: readonly Rule[],
  { cookieless }: { cookieless: boolean },
): StepsOfFile {
  const work = new FileWork(rules);
  const steps = rules.map((rule) => work.ofRule(rule));
  const byName = new Map<string, number>();
  for (const [index, { match }] of rules.entries())
    if (isForExactNames(match))
      for (const name of new Set(match.event))
        byName.set(name, (byName.get(name) ?? 0) + steps[index]!);
  const [slowest] = [...byName].toSorted((one, other) => other[1] - one[1])[0] ?? [];
  const names = new Set([...work.newNames, ...(slowest === undefined ? [] : [slowest])]);
  const ofRules = rules.map(
    ({ match }, index) =>
      ofGlobs(match.event) +
      (isForExactNames(match) && match.event?.every((name) => !names.has(name))
        ? 0
        : steps[index]!),
  );
  const hasInnerNames = rules.some(({ match }) => match.event?.some(hasInnerPart));
  const ofFile =
    (hasInnerNames ? stepsOfPart.innerGlobs : 0) + (cookieless ? stepsOfPart.cookieless : 0);
  return { total: ofRules.reduce((sum, one) => sum + one, ofFile), ofRules };
}

/** Returns why the rules have too many steps; undefined if they have not. */
export function tooManySteps(
  rules: readonly Rule[],
  { total, ofRules }: StepsOfFile,
): { readonly slowest: number; readonly message: string } | undefined {
  if (total <= stepsMax) return undefined;
  const order = [...rules.keys()].toSorted((one, other) => ofRules[other]! - ofRules[one]!);
  const shown = order
    .slice(0, slowestShown)
    .map((index) => `${rules[index]!.name} ${ofRules[index]}`);
  const others = rules.length > shown.length ? ", …" : "";
  return {
    slowest: order[0]!,
    message: `the rules take up to ${total} steps for an event (${shown.join(", ")}${others}); the maximum is ${stepsMax}, so that no batch times out. Name the events of a rule in match.event, use exact names or globs with one *, and do the same in fewer rules`,
  };
}

const slowestShown = 3;

function isForExactNames({ event }: Rule["match"]): boolean {
  return event?.every((name) => !isGlob(name)) ?? false;
}

function isGlob(pattern: string): boolean {
  return pattern.includes("*");
}

function ofGlobs(patterns: readonly string[] = []): number {
  const globs = patterns.filter(isGlob);
  const ends = globs.filter((glob) => !hasInnerPart(glob)).length;
  return ends * stepsOfPart.glob + wordsOfGlobs(globs) * stepsOfPart.innerGlobWord;
}

function ofTexts(patterns: readonly string[] | undefined): number {
  if (patterns === undefined) return 0;
  const inner = patterns.some(hasInnerPart) ? stepsOfPart.innerGlobs : 0;
  return stepsOfPart.exactTexts + inner + ofGlobs(patterns);
}

class FileWork {
  readonly newNames: ReadonlySet<string>;
  readonly #cutAgain: ReadonlySet<string>;
  /** Number of members that the rules can add to an event. */
  readonly #added: number;

  constructor(rules: readonly Rule[]) {
    const actions = rules.flatMap((rule) => rule.actions);
    this.newNames = new Set(
      actions.flatMap((action) => (action.kind === "rename" ? [action.event] : [])),
    );
    const cut = actions.flatMap((action) => (action.kind === "cut" ? pathsOf(action) : []));
    this.#cutAgain = new Set(cut.filter((path, at) => cut.indexOf(path) !== at));
    this.#added = actions.reduce(
      (sum, action) => sum + (action.kind === "set" ? action.values.size : 0),
      0,
    );
  }

  /** Returns the steps of a rule for an event with a name of the rule, without those of its names. */
  ofRule({ match, actions }: Rule): number {
    const { event, sdk, sdkVersion, bot, properties = new Map() } = match;
    let steps = stepsOfPart.rule + (event?.some(isGlob) ? stepsOfPart.ruleWithGlob : 0);
    steps += ofTexts(sdk) + ofTexts(sdkVersion) + (bot === undefined ? 0 : stepsOfPart.bot);
    for (const { kind } of properties.values())
      steps += kind === "equals" ? stepsOfPart.equals : stepsOfPart.exists;
    for (const [path] of properties) steps += this.#ofObject(path);
    return actions.reduce((sum, action) => sum + this.#ofAction(action), steps);
  }

  #ofAction(action: Action): number {
    switch (action.kind) {
      case "drop":
      case "quarantine":
        return 0;
      case "sample":
        return stepsOfPart.sample;
      case "rename":
        return stepsOfPart.rename;
      case "keepOnly":
        return stepsOfPart.keepOnly + this.#added;
      case "remove":
        return action.paths.reduce(
          (sum, path) => sum + stepsOfPart.remove + this.#ofObject(path),
          0,
        );
      case "hash":
        return action.paths.length * stepsOfPart.hash;
      case "cut":
        return pathsOf(action).reduce(
          (sum, path) => sum + (this.#cutAgain.has(path) ? stepsOfPart.cutAgain : stepsOfPart.cut),
          0,
        );
      case "set":
        return [...action.values].reduce((sum, [path, value]) => sum + ofSet(path, value), 0);
    }
  }

  /** The members that rules have added to an object are read one by one. */
  #ofObject(path: string): number {
    return path === "$set" || path === "$set_once" ? this.#added : 0;
  }
}

function ofSet(path: string, value: unknown): number {
  const bytes = Buffer.byteLength(path) + Buffer.byteLength(JSON.stringify(value));
  return stepsOfPart.set + Math.ceil(bytes / 4) * stepsOfPart.setText;
}

/** Replaces characters that no record has. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
