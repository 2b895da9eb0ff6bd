/**
 * Where an event is stored: `live` for what is happening, `historical` for imports, kept in order.
 */
export type Lane = "live" | "historical";
