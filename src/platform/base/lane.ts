export const lanes = ["live", "historical"] as const;
/** `live` is for current events. `historical` is for imports, whose events stay in order. */
export type Lane = (typeof lanes)[number];
