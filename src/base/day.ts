// Days in UTC: how long one is, and how it is written.

export const dayMs = 86_400_000;

/** The day of a time, such as `2026-11-22`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
