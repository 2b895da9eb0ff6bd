/** Returns a text that is the same for equal values, whatever the order of members. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "none";
  const entries = Object.entries(value).map(
    ([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`,
  );
  return `{${entries.sort().join()}}`;
}
