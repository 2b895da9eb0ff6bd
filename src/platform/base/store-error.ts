// Errors of a database: operation, cause and fix. No client of the gateway receives their text.

/** An expected failure. The message contains everything that an operator needs. */
export class StoreError extends Error {
  override name = "StoreError";
}

/** A statement exceeded the time limit of the database. A smaller amount of work may succeed. */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

/** The requested rows have more properties than should be in memory at a time. */
export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
