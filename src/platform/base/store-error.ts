// Errors of a database, with messages for people: the attempted operation, the cause, and the fix.
// The text is never sent to a client of the gateway.

/**
 * The error for an expected failure of the database. The message contains everything that an
 * operator needs.
 */
export class StoreError extends Error {
  override name = "StoreError";
}

/** The error for an exceeded time limit of the database. A smaller amount of work may succeed. */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

/** The error for requested rows with more properties than should be in memory at once. */
export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
