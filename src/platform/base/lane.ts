/** `live` for current events, `historical` for imports, which keep their order. */
export type Lane = "live" | "historical";
