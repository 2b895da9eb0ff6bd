// Extracts what the live page shows of a stored record: a few short fields, and the beginning of
// its text. The record comes from a client, so it must not make this slow or large: only its
// beginning is decoded, and results are copies, because a slice of a string keeps the whole string
// in memory.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /**
   * True for an event that was stored before anyone watched. Such events come from several streams,
   * each in its own order.
   */
  readonly wasThere?: boolean;
  /** The record, or its beginning if it is too long. */
  readonly text: string;
  /** The size of the whole record. */
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/** This many bytes of UTF-8 always contain more than `textCharsMax` UTF-16 units. */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/** All fields before `properties` are smaller than this, unless the event name is absurdly long. */
const headBytesMax = 65_536;
/**
 * Inside a string these quotes would be escaped, so the first occurrence of this text is the key
 * `properties`.
 */
export const propertiesKey = ',"properties":';

/** Returns undefined if the line is not a record. Does not retain `line`. */
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

/** Returns the members of a record before its properties; undefined if it is not a record. */
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
