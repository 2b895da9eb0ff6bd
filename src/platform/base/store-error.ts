// Errors of a database. Clients of the gateway never receive their text.

/** An expected failure. The message states the operation, the cause and the fix. */
export class StoreError extends Error {
  override name = "StoreError";
}

/** A statement exceeded the time limit of the database. Less work may succeed. */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
