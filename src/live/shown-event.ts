// A stored record as the live page shows it: a few short fields, and its text as it is stored, cut. The record is a client's, so nothing
// here may be slow or large because of what is in it.

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  /** The record, or its beginning when it is longer. */
  readonly text: string;
  readonly chars: number;
}

const textCharsMax = 4_096;
const fieldCharsMax = 200;
/** More than all fields before `properties` can come to, but for an absurd event name. */
const headCharsMax = 16_384;
/** Inside a string its quotes would be escaped, so this stands where the key is and nowhere before. */
const propertiesKey = ',"properties":';

/** Undefined when the line is not a record. */
export function shownEvent(line: string): ShownEvent | undefined {
  const head = headOf(line);
  if (head === undefined) return undefined;
  const field = (name: string): string => {
    const value = head[name];
    return typeof value === "string" ? value.slice(0, fieldCharsMax) : "";
  };
  return {
    project: field("project_id"),
    event: field("event"),
    id: field("distinct_id"),
    kind: field("kind"),
    receivedAt: field("received_at"),
    historical: head["historical"] === true,
    text: line.slice(0, textCharsMax),
    chars: line.length,
  };
}

function headOf(line: string): Record<string, unknown> | undefined {
  const end = line.slice(0, headCharsMax).indexOf(propertiesKey);
  if (end < 0 && line.length > headCharsMax) return undefined;
  try {
    return JSON.parse(end < 0 ? line : `${line.slice(0, end)}}`) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
