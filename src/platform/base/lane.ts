/**
 * The lane of an event: `live` for current events, `historical` for imports. Imports keep their
 * order.
 */
export type Lane = "live" | "historical";
