import { type CompiledRules, compileRules, type RulesContext } from "../../src/rules/compile.ts";
import {
  type Action,
  type Match,
  noPrivacy,
  type Privacy,
  type Rule,
} from "../../src/rules/rules-file.ts";

export const secret = Buffer.from("the secret of the project");

export function ruleOf(match: Match, ...actions: Action[]): Omit<Rule, "name"> {
  return { mode: "enforce", match, actions };
}

/** Compiles rules, which get the names `r0`, `r1` and so on. */
export function compiled(
  rules: readonly Omit<Rule, "name">[],
  privacy: Partial<Privacy> = {},
  context: Partial<RulesContext> = {},
): CompiledRules {
  const file = {
    privacy: { ...noPrivacy, ...privacy },
    rules: rules.map((rule, index) => ({ name: `r${index}`, ...rule })),
    schemas: [],
  };
  return compileRules(file, { version: 5, secret, ...context });
}
