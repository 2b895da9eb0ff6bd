// When a message was stored, in the two forms in which the server says it, to the same millisecond:
// by it a message without an id is told from another. A double cannot hold nanoseconds since 1970,
// and rounded they can be the millisecond after.

const nanosDigits = 6;

/** `nanos`: digits, as in the subject by which a message is acknowledged. */
export function msOfNanos(nanos: string): number {
  return Number(nanos.slice(0, -nanosDigits));
}

/** `time`: as RFC 3339 has it, with up to nine digits behind the second. */
export function msOfTime(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}
