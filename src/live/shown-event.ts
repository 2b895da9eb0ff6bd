// Extracts the parts of a stored record that the live page shows: a few short fields, and the
// beginning of its text. A record comes from a client, so it must not make the page slow or large:
// only its beginning is decoded, and results are copies, because a slice of a string keeps the
// whole string in memory.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /**
   * Whether the event was stored before the page was opened. Such events come from several streams,
   * each in its own order.
   */
  readonly wasThere?: boolean;
  /** The record. If it is too long, its beginning. */
  readonly text: string;
  /** The size of the whole record in bytes. */
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/** Number of bytes of UTF-8 that always contain more than `textCharsMax` UTF-16 units. */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/**
 * Maximum number of bytes of the fields before `properties`, unless the event name is absurdly
 * long.
 */
const headBytesMax = 65_536;
/**
 * The key `properties` with its separators. Inside a string the quotes would be escaped, so the
 * first occurrence of this text is the key.
 */
export const propertiesKey = ',"properties":';

/**
 * Returns the shown parts of a record; undefined if the line is not a record. Does not retain
 * `line`.
 */
export function shownEvent(line: Buffer): ShownEvent | undefined {
  const head = headOf(line);
  if (head === undefined) return undefined;
  const field = (name: string): string => {
    const value = head[name];
    return typeof value === "string" ? beginningOf(value, fieldCharsMax) : "";
  };
  const text = line.toString("utf8", 0, textBytesMax);
  return {
    project: field("project_id"),
    event: field("event"),
    id: field("distinct_id"),
    kind: field("kind"),
    receivedAt: field("received_at"),
    historical: head["historical"] === true,
    text: beginningOf(text, textCharsMax),
    bytes: line.length,
    isCut: text.length > textCharsMax,
  };
}

/** Returns the members of a record before its properties; undefined if the line is not a record. */
export function headOf(line: Buffer): Record<string, unknown> | undefined {
  const end = line.subarray(0, headBytesMax).indexOf(propertiesKey);
  if (end < 0 && line.length > headBytesMax) return undefined;
  try {
    return JSON.parse(end < 0 ? line.toString() : `${line.toString("utf8", 0, end)}}`) as Record<
      string,
      unknown
    >;
  } catch {
    return undefined;
  }
}

function beginningOf(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : Buffer.from(text.slice(0, charsMax)).toString();
}
