// Makes what the live page shows of a stored record: a few short fields, and the beginning of its
// text as it is stored. The record is a client's, so nothing in it may make this slow or large.
// Only its beginning is ever decoded. What is kept are copies, because a slice of a string keeps
// all of that string in memory.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /**
   * True for an event that was stored before anybody watched. Such events come from several
   * streams, each in its own order.
   */
  readonly wasThere?: boolean;
  /** The record, or its beginning when it is longer. */
  readonly text: string;
  /** The size of the whole record. */
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/**
 * This many bytes of UTF-8 always hold more than `textCharsMax` UTF-16 units, whatever they are.
 */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/**
 * All fields before `properties` come to less than this, unless the event name is absurdly long.
 */
const headBytesMax = 65_536;
/**
 * Inside a string these quotes would be escaped. So the first place where this text stands is where
 * the key `properties` is.
 */
export const propertiesKey = ',"properties":';

/** Undefined when the line is not a record. Nothing of `line` is kept. */
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

/** The members of a record that come before its properties; undefined: not a record. */
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
