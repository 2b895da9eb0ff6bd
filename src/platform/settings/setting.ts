import type { Parse } from "./parsers.ts";

export interface Setting<T, Fallback extends string | undefined> {
  readonly parse: Parse<T>;
  /** A setting without a default may be unset. */
  readonly fallback: Fallback;
  /** Shown by docs/reference/settings.md and --help. */
  readonly unit: string;
  readonly why: string;
}

export function setting<T, Fallback extends string | undefined>(
  row: Setting<T, Fallback>,
): Setting<T, Fallback> {
  return row;
}
