// The form of an event that all sinks use. A batch has tens of thousands of events, so the objects
// are small and share values. Views of the bytes are created when they are needed.

import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { isUuid } from "../../platform/base/forms.ts";
import { type FieldType, Part, type RecordField, recordFields } from "../../records/fields.ts";
import { isString } from "../../records/item-view.ts";
import { JsonMembers } from "../../records/json-members.ts";
import { Line, LineFlag, type RecordView } from "../../records/lines.ts";
import { RecordReader } from "../../records/reader.ts";
import { TokenType } from "../../records/table.ts";
import type { StoredFrame } from "../stream/frame.ts";

interface Origin {
  readonly receivedAtMs: number;
  readonly timestampSentMs: number;
  readonly sentAtMs: number;
  readonly ip: string;
  readonly kind: string;
  readonly personProfile: boolean;
  readonly historical: boolean;
}

/** An event. Its bytes belong to the frame and must not be changed. */
export interface SinkRecord {
  readonly stream: string;
  readonly sequence: number;
  readonly line: number;
  readonly storedAtMs: number;
  readonly uuid: string;
  readonly projectId: string;
  readonly event: string;
  readonly distinctId: string;
  /** Time of the event in ms since 1970. The year is from 0 to 9999. */
  readonly timestampMs: number;
  readonly origin: Origin;
  readonly properties: Uint8Array;
  readonly set: Uint8Array | undefined;
  readonly setOnce: Uint8Array | undefined;
  readonly unset: Uint8Array | undefined;
  readonly text: Uint8Array;
  /** The uuid of the person, or "" without a person. It is set after the batch was built. */
  personUuid: string;
}

/** Reasons why a line was rejected. `value` means that the target refuses a value of the event. */
export const rejectReasons = ["not_json", "not_a_record", "wrong_project", "value"] as const;
type RejectReason = (typeof rejectReasons)[number];

export interface RejectedLine {
  readonly stream: string;
  readonly sequence: number;
  readonly line: number;
  readonly storedAtMs: number;
  readonly projectId: string;
  readonly reason: RejectReason;
  readonly detail: string;
  readonly text: Uint8Array;
}

export function refusedLine(event: SinkRecord, detail: string): RejectedLine {
  const { stream, sequence, line, storedAtMs, projectId, text } = event;
  return { stream, sequence, line, storedAtMs, projectId, reason: "value", detail, text };
}

interface SinkVisitor {
  record(record: SinkRecord): void;
  rejected(line: RejectedLine): void;
}

type FrameOfRecords = Pick<
  StoredFrame,
  "stream" | "sequence" | "storedAtMs" | "projectId" | "data"
>;

const emptyObject = Buffer.from("{}");
const addedMembers = [
  [Part.Replaced, "$replaced"],
  [Part.Schema, "$schema"],
] as const;

export class SinkRecords {
  readonly #records = new RecordReader();
  #origin: Origin | undefined = undefined;

  *read(frame: FrameOfRecords, visitor: SinkVisitor): Generator<void, void> {
    const { stream, sequence, storedAtMs, data } = frame;
    const body = Buffer.from(data.buffer, data.byteOffset, data.length);
    const reject = (line: LinePlace, reason: RejectReason, detail: string): void => {
      const text = body.subarray(line.start, line.end);
      const where = { stream, sequence, line: line.line, storedAtMs, text };
      visitor.rejected({ ...where, projectId: frame.projectId ?? "", reason, detail });
    };
    yield* this.#records.read(data, {
      record: (record) => {
        // The origin is also read for a rejected line, because the next line may have the same one.
        const origin = this.#originFor(record);
        const fault = record.isWritten ? undefined : faultOf(record);
        if (fault !== undefined) reject(record, "not_a_record", fault);
        else if (frame.projectId !== undefined && record.projectId !== frame.projectId)
          reject(
            record,
            "wrong_project",
            `the project_id ${record.projectId} of the event is not the project of the message`,
          );
        else visitor.record(new FrameRecord({ frame, body }, record, origin));
      },
      unreadable: ({ reason, detail }, line, start, end) =>
        reject({ line, start, end }, reason, detail),
    });
  }

  #originFor(record: RecordView): Origin {
    if (!record.has(LineFlag.SameOrigin) || this.#origin === undefined)
      this.#origin = originOf(record);
    return this.#origin;
  }
}

type LinePlace = Pick<RecordView, "line" | "start" | "end">;

interface FrameBytes {
  readonly frame: FrameOfRecords;
  readonly body: Buffer;
}

function faultOf(record: RecordView): string | undefined {
  const lacks = (part: Part): boolean => !isString(record.type(part));
  if (lacks(Part.Uuid)) return "the event has no uuid";
  if (!isUuid(record.text(Part.Uuid))) return "the uuid of the event is not a UUID";
  if (lacks(Part.ProjectId)) return "the event has no project_id";
  if (record.projectId === "") return "the project_id of the event is not an id";
  if (Number.isNaN(record.ms(Line.Timestamp))) return "the timestamp of the event is not a time";
  if (lacks(Part.Event)) return "the event has no name in event";
  return lacks(Part.DistinctId) ? "the event has no distinct_id" : undefined;
}

function originOf(record: RecordView): Origin {
  const text = (part: Part): string => (isString(record.type(part)) ? record.text(part) : "");
  const receivedAtMs = record.ms(Line.ReceivedAt);
  return {
    receivedAtMs: Number.isNaN(receivedAtMs) ? record.ms(Line.Timestamp) : receivedAtMs,
    timestampSentMs: record.ms(Line.TimestampSent),
    sentAtMs: record.ms(Line.SentAt),
    ip: text(Part.Ip),
    kind: text(Part.Kind) || "custom",
    personProfile: record.has(LineFlag.PersonProfile),
    historical: record.has(LineFlag.Historical),
  };
}

class FrameRecord implements SinkRecord {
  readonly line: number;
  readonly uuid: string;
  readonly projectId: string;
  readonly event: string;
  readonly distinctId: string;
  readonly timestampMs: number;
  readonly set: Buffer | undefined;
  readonly setOnce: Buffer | undefined;
  readonly unset: Buffer | undefined;
  personUuid = "";
  readonly origin: Origin;
  readonly #frame: FrameOfRecords;
  readonly #body: Buffer;
  readonly #start: number;
  readonly #end: number;
  readonly #propertiesStart: number;
  readonly #propertiesEnd: number;
  /** Members that the properties get, as JSON, by their names, or undefined. */
  readonly #added: Map<string, Buffer> | undefined;

  constructor({ frame, body }: FrameBytes, record: RecordView, origin: Origin) {
    const bytes = (part: Part, type: TokenType): Buffer | undefined =>
      record.type(part) === type
        ? body.subarray(record.startOf(part) + record.shift, record.endOf(part) + record.shift)
        : undefined;
    this.line = record.line;
    this.uuid = record.text(Part.Uuid).toLowerCase();
    this.projectId = record.projectId;
    this.event = record.text(Part.Event);
    this.distinctId = record.text(Part.DistinctId);
    this.timestampMs = record.ms(Line.Timestamp);
    this.set = bytes(Part.Set, TokenType.Object);
    this.setOnce = bytes(Part.SetOnce, TokenType.Object);
    this.unset = bytes(Part.Unset, TokenType.Array);
    this.#frame = frame;
    this.origin = origin;
    this.#body = body;
    this.#start = record.start;
    this.#end = record.end;
    const hasProperties = record.type(Part.Properties) === TokenType.Object;
    this.#propertiesStart = hasProperties ? record.startOf(Part.Properties) + record.shift : 0;
    this.#propertiesEnd = hasProperties ? record.endOf(Part.Properties) + record.shift : 0;
    for (const [part, name] of addedMembers) {
      const value = bytes(part, TokenType.Object);
      if (value === undefined) continue;
      this.#added ??= new Map();
      this.#added.set(name, value);
    }
  }

  get stream(): string {
    return this.#frame.stream;
  }

  get sequence(): number {
    return this.#frame.sequence;
  }

  get storedAtMs(): number {
    return this.#frame.storedAtMs;
  }

  /**
   * Returns the properties, with the members `$replaced` and `$schema` of the record. They replace
   * members of these names that the client has sent.
   */
  get properties(): Buffer {
    const [start, end] = [this.#propertiesStart, this.#propertiesEnd];
    const properties = end === 0 ? emptyObject : this.#body.subarray(start, end);
    if (this.#added === undefined) return properties;
    const rest = withoutMembers(properties, [...this.#added.keys()]);
    const parts = [...this.#added].flatMap(([name, value], index) => [
      Buffer.from(`${index === 0 ? "{" : ","}"${name}":`),
      value,
    ]);
    if (!isEmptyObject(rest)) parts.push(Buffer.from(","));
    return Buffer.concat([...parts, rest.subarray(1)]);
  }

  get text(): Buffer {
    return this.#body.subarray(this.#start, this.#end);
  }
}

/** Returns the object without the members of these names, which have letters, digits and `$`. */
function withoutMembers(object: Buffer, names: readonly string[]): Buffer {
  // A name may be written with escapes.
  const marks = [...names.map((name) => `"${name}"`), "\\u00"];
  if (!marks.some((mark) => object.includes(mark))) return object;
  const members = new JsonMembers(object);
  members.begin(object, 0, object.length);
  const kept: Buffer[] = [];
  while (members.next()) {
    const { nameStart, nameEnd, valueEnd } = members;
    const name = JSON.parse(object.toString("utf8", nameStart - 1, nameEnd + 1)) as string;
    if (names.includes(name)) continue;
    kept.push(Buffer.from(kept.length === 0 ? "{" : ","), object.subarray(nameStart - 1, valueEnd));
  }
  return kept.length === 0 ? emptyObject : Buffer.concat([...kept, Buffer.from("}")]);
}

function isEmptyObject(object: Buffer): boolean {
  let at = 1;
  while (object[at]! <= Ascii.Space) at++;
  return object[at] === Ascii.CloseBrace;
}

interface Values {
  readonly id: string;
  readonly uuid: string;
  readonly text: string;
  readonly time: number;
  readonly boolean: boolean;
  readonly object: Uint8Array | undefined;
  readonly names: Uint8Array | undefined;
}

/** The types of fields that have a column. */
export type ColumnType = Exclude<FieldType, "integer">;

export type EventColumn = {
  [Type in ColumnType]: {
    readonly name: string;
    readonly type: Type;
    readonly isOptional: boolean;
    readonly of: (event: SinkRecord) => Values[Type];
  };
}[ColumnType];

type ColumnField = {
  [Name in keyof typeof recordFields]: (typeof recordFields)[Name] extends { column: string }
    ? Name
    : never;
}[keyof typeof recordFields];

function column<Name extends ColumnField>(
  field: Name,
  of: (event: SinkRecord) => Values[(typeof recordFields)[Name]["type"]],
): EventColumn {
  const { column: name, type, isOptional = false }: RecordField = recordFields[field];
  return { name: name ?? field, type, isOptional, of } as EventColumn;
}

/** The columns of an event in databases and files. They are a public interface. */
export const eventColumns: readonly EventColumn[] = [
  column("project_id", ({ projectId }) => projectId),
  column("uuid", ({ uuid }) => uuid),
  column("event", ({ event }) => event),
  column("distinct_id", ({ distinctId }) => distinctId),
  column("timestamp", ({ timestampMs }) => timestampMs),
  column("received_at", ({ origin }) => origin.receivedAtMs),
  { name: "stored_at", type: "time", isOptional: false, of: ({ storedAtMs }) => storedAtMs },
  column("timestamp_sent", ({ origin }) => origin.timestampSentMs),
  column("sent_at", ({ origin }) => origin.sentAtMs),
  column("ip", ({ origin }) => origin.ip),
  column("kind", ({ origin }) => origin.kind),
  column("person_profile", ({ origin }) => origin.personProfile),
  column("historical", ({ origin }) => origin.historical),
  column("properties", ({ properties }) => properties),
  column("$set", ({ set }) => set),
  column("$set_once", ({ setOnce }) => setOnce),
  column("$unset", ({ unset }) => unset),
];

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

export const personColumn: EventColumn = {
  name: "person_uuid",
  type: "uuid",
  isOptional: true,
  of: ({ personUuid }) => personUuid,
};

export function eventColumnsOf({ withPerson }: { readonly withPerson: boolean }) {
  return withPerson ? [...eventColumns, personColumn] : eventColumns;
}

export function singleEvents(events: readonly SinkRecord[]): SinkRecord[] {
  const seen = new Set<string>();
  return events.filter((event) => {
    const key = keyOf(event);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Maps each event to its next copy. If the target refuses the event, the copy is tried. */
export function nextCopies(events: readonly SinkRecord[]): Map<SinkRecord, SinkRecord> {
  const last = new Map<string, SinkRecord>();
  const next = new Map<SinkRecord, SinkRecord>();
  for (const event of events) {
    const key = keyOf(event);
    const before = last.get(key);
    if (before !== undefined) next.set(before, event);
    last.set(key, event);
  }
  return next;
}

function keyOf({ uuid, projectId, event, distinctId }: SinkRecord): string {
  return JSON.stringify([uuid, projectId, event, distinctId]);
}
