// What Node is told for a command of penstock, beside what it does by itself.

/**
 * The events of a batch live for some hundred milliseconds, which a young generation of the default
 * size is too small for. Twice the size, into Parquet files: 167,000 and 188,000 events/s without,
 * 200,000 and 208,000 with, in two alternating rounds on a nearly quiet machine; some 40 MB more.
 */
export const sinkFlag = "--max-semi-space-size=32";

/** `command`: the first argument of penstock. */
export function nodeFlagsOf(command) {
  return command === "sink" ? [sinkFlag] : [];
}
