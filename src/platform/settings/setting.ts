// The type of a row of the table of settings. Independent of the settings.

import type { Parse } from "./parsers.ts";

export interface Setting<T, Fallback extends string | undefined> {
  readonly parse: Parse<T>;
  /** The default as text. A setting without a default may be unset. */
  readonly fallback: Fallback;
  /** The unit or kind of the value. docs/reference/settings.md and --help show it. */
  readonly unit: string;
  readonly why: string;
}

export function setting<T, Fallback extends string | undefined>(
  row: Setting<T, Fallback>,
): Setting<T, Fallback> {
  return row;
}
