// What the table of settings has in a row. No setting is named here.

import type { Parse } from "./parsers.ts";

export interface Setting<T, Fallback extends string | undefined> {
  readonly parse: Parse<T>;
  /** The default, as text. A setting without a default may be unset. */
  readonly fallback: Fallback;
  /** What the text stands for: shown in docs/reference/settings.md and by --help. */
  readonly unit: string;
  readonly why: string;
}

export function setting<T, Fallback extends string | undefined>(
  row: Setting<T, Fallback>,
): Setting<T, Fallback> {
  return row;
}
