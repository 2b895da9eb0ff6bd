import { lettersApart, nearest, typosMax } from "../base/near-name.ts";
import { type Config, flagOf, type SettingName, settings, variableOf } from "./config.ts";
import { faultsBetween } from "./faults.ts";

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Variables of the project's own tests and tools, which a gateway ignores. */
const ofTests = "PENSTOCK_TEST_";
const ownWord = "PENSTOCK";
const prefix = `${ownWord}_`;

/**
 * Reads and checks all settings, and reports all errors at once. A flag takes precedence over a
 * variable. Unknown PENSTOCK_* variables are errors: a misspelt limit would silently have no
 * effect.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  const names = Object.keys(settings) as SettingName[];
  const faults: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const row = settings[name];
    const fromFlag = flags[name];
    const given = fromFlag ?? env[variableOf(name)] ?? row.fallback;
    if (given === undefined) continue;
    try {
      values[name] = row.parse(given);
    } catch (error) {
      faults.push(
        `${fromFlag === undefined ? variableOf(name) : flagOf(name)}: ${(error as Error).message}`,
      );
    }
  }
  faults.push(...unknownVariables(Object.keys(env), names.map(variableOf)));
  if (faults.length === 0) faults.push(...faultsBetween(values as unknown as Config));
  return faults.length === 0
    ? { ok: true, config: values as unknown as Config }
    : { ok: false, faults };
}

/** The messages contain no values: a misspelt variable may hold a secret. */
function unknownVariables(variables: readonly string[], known: readonly string[]): string[] {
  return variables.flatMap((variable) => {
    const own = ownNameOf(variable);
    if (own === undefined || own.startsWith(ofTests) || known.includes(variable)) return [];
    const meant = meantBy(own, known);
    const hint = meant === undefined ? "" : `: did you mean ${meant}?`;
    return [`${variable}: no such setting${hint}`];
  });
}

/** Returns undefined if the variable does not belong to this program. */
function ownNameOf(variable: string): string | undefined {
  if (variable.startsWith(prefix)) return variable;
  const word = /^[A-Z0-9]*/.exec(variable)![0];
  const isOurs = word === ownWord || isSlipOfOwnWord(word);
  if (!isOurs && !variable.startsWith(ownWord)) return undefined;
  const rest = isOurs ? variable.slice(word.length + 1) : variable.slice(ownWord.length);
  return rest === "" ? undefined : prefix + rest;
}

function isSlipOfOwnWord(word: string): boolean {
  // The name OPENSTACK differs in two letters, and belongs to another program.
  const most = word.startsWith("P") ? 2 : 1;
  return lettersApart(word, ownWord, most) <= most;
}

/** Returns undefined if no name is similar enough. */
function meantBy(variable: string, known: readonly string[]): string | undefined {
  const given = variable.slice(prefix.length);
  const most = typosMax(given);
  const apart = (name: string): number => {
    const wanted = name.slice(prefix.length);
    return Math.min(
      lettersApart(given, wanted, most),
      lettersApart(inOrder(given), inOrder(wanted), most),
    );
  };
  return nearest(known, apart, most);
}

/** Sorts the words of a name, so that `MAX_BODY_BYTES` and `BODY_BYTES_MAX` are equal. */
function inOrder(name: string): string {
  return name.split("_").sort().join("_");
}
