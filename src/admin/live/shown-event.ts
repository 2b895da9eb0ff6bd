// Makes what the live page shows of a stored record: a few short fields, and its text as it is
// stored, cut. The record is a client's, so nothing here may be slow or large because of what is in
// it. Only its beginning is ever decoded, and what is kept are copies, because a slice of a string
// keeps all of that string in memory.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /**
   * Stored before anybody watched: such events come from several streams, each in its own order.
   */
  readonly wasThere?: boolean;
  /** The record, or its beginning when it is longer. */
  readonly text: string;
  /** The size of the whole record. */
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/** These many bytes always hold more than `textCharsMax` characters, whatever they are. */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/** More than all fields before `properties` can come to, but for an absurd event name. */
const headBytesMax = 65_536;
/**
 * Inside a string its quotes would be escaped, so this stands where the key is and nowhere before.
 */
const propertiesKey = ',"properties":';

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

function headOf(line: Buffer): Record<string, unknown> | undefined {
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
