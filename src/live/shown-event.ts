// Extracts the parts of a stored record that the live page shows. Records come from clients: only
// the beginning is decoded, and results are copies, because a slice would keep the whole string.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /** Whether the event was stored before the page was opened. */
  readonly wasThere?: boolean;
  /** The record, or its beginning. */
  readonly text: string;
  /** The size of the whole record. */
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/** This many bytes of UTF-8 always contain more than `textCharsMax` UTF-16 units. */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/** Maximum bytes of the fields before `properties`, except with an absurdly long event name. */
const headBytesMax = 65_536;
/** Inside a string the quotes would be escaped, so the first occurrence of this text is the key. */
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

/** Returns the members before `properties`; undefined if the line is not a record. */
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
