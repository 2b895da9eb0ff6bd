/**
 * Where an event is stored: `live` for current events, `historical` for imports, whose order is
 * preserved.
 */
export type Lane = "live" | "historical";
