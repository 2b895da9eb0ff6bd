// What a database answers when it cannot do what it should, in words for people: what was tried,
// what is wrong, and what to do. Its text never reaches a client of the gateway.

/** An expected failure of the database. The message is all that an operator has to see. */
export class StoreError extends Error {
  override name = "StoreError";
}

/** The database was at work for longer than it may be. Less at a time may take less. */
export class TooSlowError extends StoreError {
  override name = "TooSlowError";
}

/** Rows that were asked for have more properties than should be in memory at once. */
export class TooLargeError extends StoreError {
  override name = "TooLargeError";
}
