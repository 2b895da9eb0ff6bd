// The errors of a database. Their text is never sent to clients of the gateway.

/** An expected failure. The message states the operation, the cause and the fix. */
export class StoreError extends Error {
  override name = "StoreError";
}

/**
 * A statement took longer than the time limit of the database. A retry with fewer rows may succeed.
 */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
