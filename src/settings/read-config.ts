// Reads all settings from variables and flags. Every fault is found before anything starts, and all
// are listed at once. Must not read `process`.

import { type Config, flagOf, type SettingName, settings, variableOf } from "./config.ts";
import { faultsBetween } from "./faults.ts";

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

/**
 * Reads all settings: a flag wins over a variable, a variable over the default. Unknown PENSTOCK_*
 * variables are faults, because a misspelt limit that is silently not in force is worse than a
 * gateway that does not start.
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
  const known = new Set(names.map(variableOf));
  for (const variable of Object.keys(env)) {
    if (variable.startsWith("PENSTOCK_") && !known.has(variable))
      faults.push(`${variable}: no such setting`);
  }
  if (faults.length === 0) faults.push(...faultsBetween(values as unknown as Config));
  return faults.length === 0
    ? { ok: true, config: values as unknown as Config }
    : { ok: false, faults };
}
