// Errors of a database, with messages for people: what was attempted, what is wrong, and what to
// do. The text is never sent to a client of the gateway.

/** An expected failure of the database. The message is everything that an operator needs. */
export class StoreError extends Error {
  override name = "StoreError";
}

/** The database exceeded the time limit. A smaller amount of work may succeed. */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

/** The requested rows have more properties than should be in memory at once. */
export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
