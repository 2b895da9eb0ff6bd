// Reads the lines of a stored frame as records. Each line is scanned by itself, so that one that is
// no JSON spoils no other. What stands between the long values of a line as the gateway writes it
// is short and always the same, so it is told by two patterns; another spelling is read member by
// member. Properties are never taken apart.

import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { isProjectId, isUuid } from "../../platform/base/forms.ts";
import { isString, typeAt } from "../../records/item-view.ts";
import { JsonMembers } from "../../records/json-members.ts";
import { createNativeScanner } from "../../records/native.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  Header,
  hasExtra,
  Row,
  ScanStatus,
  TokenType,
} from "../../records/table.ts";
import { timestampTokenMs } from "../../records/timestamp.ts";
import { UuidForm, uuidBytes, uuidForm } from "../../records/uuid.ts";
import { Remembered } from "./remembered.ts";
import type { RejectedLine, RejectReason, SinkRecord } from "./sink-target.ts";
import {
  type FrameOfRecords,
  type LinePlace,
  type SharedFields,
  WrittenRecord,
  withReplaced,
} from "./written-record.ts";

interface RecordVisitor {
  record(record: SinkRecord): void;
  rejected(line: RejectedLine): void;
}

type Fields = Omit<
  SinkRecord,
  "stream" | "sequence" | "line" | "storedAtMs" | "text" | "personUuid"
>;

interface Span {
  readonly start: number;
  readonly end: number;
  readonly type: TokenType;
}

/** What is wrong with a line. */
class LineFault extends Error {
  reason: RejectReason = "not_json";
}

/** Where a line begins. */
interface LineStart {
  readonly line: number;
  readonly start: number;
}

interface Part {
  readonly from: LineStart;
  readonly linesMax: number;
}

const wholeFrame: Part = { from: { line: 0, start: 0 }, linesMax: Number.POSITIVE_INFINITY };

const time = '"([^"\\\\]{24})"';
const beforeUuid = Buffer.from('{"uuid":"');
const head = /^","project_id":"([A-Za-z0-9_-]{1,64})","event":$/;
const middle = new RegExp(
  `^(?:,"timestamp_sent":${time})?,"received_at":${time}(?:,"sent_at":${time})?(?:,"ip":"([ !#-[\\]-~]*)")?,"kind":"([a-z_]+)","person_profile":(true|false),"historical":(true|false),"properties":$`,
);
const beforeDistinctId = Buffer.from(',"distinct_id":');
const beforeTimestamp = Buffer.from(',"timestamp":');
const beforeSet = Buffer.from(',"$set":');
const beforeSetOnce = Buffer.from(',"$set_once":');
const beforeUnset = Buffer.from(',"$unset":');
const beforeReplaced = Buffer.from(',"replaced":');
const emptyObject = Buffer.from("{}");
const emptyBytes = Buffer.alloc(0);
const row = Header.Words;

export class SinkRecords {
  readonly #scanner = createNativeScanner(1);
  readonly #members = new JsonMembers(emptyObject);

  /** One for all lines: to make one takes longer than to read a short line. */
  readonly #fault = new LineFault();

  readonly #heads = new Remembered(headOf);
  readonly #middles = new Remembered(middleOf);

  /**
   * Tells the visitor of every line of the part, in order. Blank lines are told to nobody. Gives
   * where the next part begins; undefined: the frame is at its end.
   */
  read(
    frame: FrameOfRecords,
    visitor: RecordVisitor,
    { from, linesMax }: Part = wholeFrame,
  ): LineStart | undefined {
    const { data, projectId } = frame;
    const body = Buffer.from(data.buffer, data.byteOffset, data.length);
    let { line, start } = from;
    for (; start < body.length; line++) {
      if (line - from.line >= linesMax) return { line, start };
      const found = body.indexOf(Ascii.LineFeed, start);
      const end = found < 0 ? body.length : found;
      const place = { frame, body, line, start, end };
      start = end + 1;
      try {
        const record = this.#recordOf(place);
        if (record === undefined) continue;
        if (projectId !== undefined && record.projectId !== projectId)
          throw this.#faulty(
            "wrong_project",
            `it says that it is of the project ${record.projectId}`,
          );
        visitor.record(record);
      } catch (error) {
        if (!(error instanceof LineFault)) throw error;
        const { reason, message: detail } = error;
        const { stream, sequence, storedAtMs } = frame;
        const where = { stream, sequence, line, storedAtMs, text: textOf(place) };
        visitor.rejected({ ...where, projectId: projectId ?? "", reason, detail });
      }
    }
    return undefined;
  }

  #faulty(reason: RejectReason, detail: string): LineFault {
    const fault = this.#fault;
    fault.reason = reason;
    fault.message = detail;
    return fault;
  }

  /** Undefined: the line is blank. */
  #recordOf(place: LinePlace): SinkRecord | undefined {
    const { table } = this.#scanner;
    const status = this.#scanner.scanPart(place.body, place.start, place.end);
    if (status === ScanStatus.OutOfMemory) throw new Error("scanning a line: no memory");
    if (status === ScanStatus.Empty) return undefined;
    if (status !== ScanStatus.Ok) {
      const what = status === ScanStatus.InvalidUtf8 ? "UTF-8" : "JSON";
      const at = table[Header.ErrorOffset]!;
      throw this.#faulty("not_json", `it is not ${what} from byte ${at} on`);
    }
    if (table[Header.RootType] !== TokenType.Object)
      throw this.#faulty("not_a_record", "it is no object");
    const isItem = table[Header.BatchType] === TokenType.Absent;
    const record = isItem ? this.#asWritten(place) : undefined;
    if (record !== undefined) return record;
    const { stream, sequence, storedAtMs } = place.frame;
    const text = textOf(place);
    const where = { stream, sequence, line: place.line, storedAtMs, text };
    return { ...where, ...this.#byMembers(text), personUuid: "" };
  }

  /** Undefined: it is not spelt as the gateway does. */
  #asWritten(place: LinePlace): SinkRecord | undefined {
    const { table } = this.#scanner;
    const { body, start } = place;
    const eventStart = start + table[row + Row.EventStart]!;
    const eventEnd = start + table[row + Row.EventEnd]!;
    const idStart = start + table[row + Row.DistinctIdStart]!;
    const idEnd = start + table[row + Row.DistinctIdEnd]!;
    const timeStart = start + table[row + Row.TimestampStart]!;
    const timeEnd = start + table[row + Row.TimestampEnd]!;
    const propertiesStart = start + table[row + Row.PropertiesStart]!;
    const uuidStart = start + beforeUuid.length;
    const uuidEnd = uuidStart + uuidBytes;
    const types = table[row + Row.FieldTypes]!;
    if (
      !isString(typeAt(types, FieldShift.Event)) ||
      !isString(typeAt(types, FieldShift.DistinctId)) ||
      typeAt(types, FieldShift.Properties) !== TokenType.Object ||
      !isAt(body, beforeUuid, start, Math.min(uuidStart, eventStart)) ||
      !isAt(body, beforeDistinctId, eventEnd, idStart) ||
      !isAt(body, beforeTimestamp, idEnd, timeStart)
    )
      return undefined;
    const projectId = this.#heads.of(body, uuidEnd, eventStart);
    const shared = this.#middles.of(body, timeEnd, propertiesStart);
    const timestampMs = timestampTokenMs(body, timeStart, timeEnd);
    if (
      projectId === undefined ||
      shared === undefined ||
      Number.isNaN(timestampMs) ||
      uuidForm(body, uuidStart, uuidEnd) !== UuidForm.Lower
    )
      return undefined;
    const extra = extraOf(table, row);
    const unset = hasExtra(table, row)
      ? typeAt(table[extra + Extra.Types]!, ExtraShift.Unset)
      : TokenType.Absent;
    const rest = this.#restAfterFields(place, unset);
    const replaced = rest === undefined ? undefined : replacedOf(rest);
    if (replaced === undefined) return undefined;
    const own = {
      uuid: body.toString("latin1", uuidStart, uuidEnd),
      projectId,
      event: stringIn(body, eventStart, eventEnd),
      distinctId: stringIn(body, idStart, idEnd),
      timestampMs,
      propertiesStart,
      propertiesEnd: start + table[row + Row.PropertiesEnd]!,
      replaced: replaced.length === 0 ? undefined : replaced,
      set: this.#object(place, typeAt(types, FieldShift.Set), row + Row.SetStart),
      setOnce: this.#object(place, typeAt(types, FieldShift.SetOnce), row + Row.SetOnceStart),
      unset: unset === TokenType.Array ? this.#tokenAt(place, extra + Extra.UnsetStart) : undefined,
    };
    return new WrittenRecord(place, own, shared);
  }

  /**
   * What follows properties and person fields, up to the end of the line; undefined if these do not
   * follow each other.
   */
  #restAfterFields({ body, start, end }: LinePlace, unset: TokenType): Buffer | undefined {
    const { table } = this.#scanner;
    const types = table[row + Row.FieldTypes]!;
    let at = start + table[row + Row.PropertiesEnd]!;
    const isNext = (type: TokenType, before: Buffer, word: number): boolean => {
      if (type === TokenType.Absent) return true;
      if (!isAt(body, before, at, start + table[word]!)) return false;
      at = start + table[word + 1]!;
      return true;
    };
    const isWritten =
      isNext(typeAt(types, FieldShift.Set), beforeSet, row + Row.SetStart) &&
      isNext(typeAt(types, FieldShift.SetOnce), beforeSetOnce, row + Row.SetOnceStart) &&
      isNext(unset, beforeUnset, extraOf(table, row) + Extra.UnsetStart);
    return isWritten ? body.subarray(at, end) : undefined;
  }

  #object(place: LinePlace, type: TokenType, word: number): Buffer | undefined {
    return type === TokenType.Object ? this.#tokenAt(place, word) : undefined;
  }

  /** What has its span at the word. */
  #tokenAt({ body, start }: LinePlace, word: number): Buffer {
    const { table } = this.#scanner;
    return body.subarray(start + table[word]!, start + table[word + 1]!);
  }

  #byMembers(text: Buffer): Fields {
    const spans = this.#spansOf(text);
    const string = (name: string): string | undefined => {
      const span = spans.get(name);
      return span !== undefined && isString(span.type)
        ? stringIn(text, span.start, span.end)
        : undefined;
    };
    const needed = (name: string): string => {
      const value = string(name);
      if (value === undefined) throw this.#faulty("not_a_record", `it has no ${name}`);
      return value;
    };
    const ms = (name: string): number => {
      const { type, start, end } = spans.get(name) ?? absent;
      return isString(type) ? timestampTokenMs(text, start, end) : Number.NaN;
    };
    const json = (name: string, wanted: TokenType): Buffer | undefined => {
      const { type, start, end } = spans.get(name) ?? absent;
      return type === wanted ? text.subarray(start, end) : undefined;
    };
    const uuid = needed("uuid");
    if (!isUuid(uuid)) throw this.#faulty("not_a_record", "its uuid is no UUID");
    const projectId = needed("project_id");
    if (!isProjectId(projectId)) throw this.#faulty("not_a_record", "its project_id is none");
    const timestampMs = ms("timestamp");
    if (Number.isNaN(timestampMs)) throw this.#faulty("not_a_record", "its timestamp is none");
    const receivedAtMs = ms("received_at");
    return {
      uuid: uuid.toLowerCase(),
      projectId,
      event: needed("event"),
      distinctId: needed("distinct_id"),
      timestampMs,
      receivedAtMs: Number.isNaN(receivedAtMs) ? timestampMs : receivedAtMs,
      timestampSentMs: ms("timestamp_sent"),
      sentAtMs: ms("sent_at"),
      ip: string("ip") ?? "",
      kind: string("kind") ?? "custom",
      personProfile: spans.get("person_profile")?.type !== TokenType.False,
      historical: spans.get("historical")?.type === TokenType.True,
      properties: withReplaced(
        json("properties", TokenType.Object) ?? emptyObject,
        json("replaced", TokenType.Object),
      ),
      set: json("$set", TokenType.Object),
      setOnce: json("$set_once", TokenType.Object),
      unset: json("$unset", TokenType.Array),
    };
  }

  /** The last member of a name counts. */
  #spansOf(text: Buffer): Map<string, Span> {
    const spans = new Map<string, Span>();
    const members = this.#members;
    const start = text.indexOf(Ascii.OpenBrace);
    members.begin(text, start, text.lastIndexOf(Ascii.CloseBrace) + 1);
    while (members.next()) {
      const name = stringIn(text, members.nameStart - 1, members.nameEnd + 1);
      const { valueStart, valueEnd, valueType: type } = members;
      spans.set(name, { start: valueStart, end: valueEnd, type });
    }
    return spans;
  }
}

const absent: Span = { start: 0, end: 0, type: TokenType.Absent };

/** No `replaced` that a gateway writes is longer. */
const replacedBytesMax = 8_192;

/**
 * The object `replaced` in what follows the person fields of a line, the closing brace included;
 * empty if there is none, and undefined if there is anything else: of two members of a name the
 * last one counts.
 */
function replacedOf(rest: Buffer): Buffer | undefined {
  if (rest.length === 1) return emptyBytes;
  const replaced = rest.subarray(beforeReplaced.length, -1);
  if (
    replaced.length > replacedBytesMax ||
    !rest.subarray(0, beforeReplaced.length).equals(beforeReplaced)
  )
    return undefined;
  try {
    const value: unknown = JSON.parse(replaced.toString());
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? replaced
      : undefined;
  } catch {
    return undefined;
  }
}

function headOf(text: string): string | undefined {
  return head.exec(text)?.[1];
}

function middleOf(text: string): SharedFields | undefined {
  const found = middle.exec(text);
  if (found === null) return undefined;
  const receivedAtMs = msOf(found[2]);
  if (Number.isNaN(receivedAtMs)) return undefined;
  return {
    receivedAtMs,
    timestampSentMs: msOf(found[1]),
    sentAtMs: msOf(found[3]),
    ip: found[4] ?? "",
    kind: found[5]!,
    personProfile: found[6] === "true",
    historical: found[7] === "true",
  };
}

function textOf({ body, start, end }: LinePlace): Buffer {
  return body.subarray(start, end);
}

function isAt(text: Buffer, expected: Buffer, start: number, end: number): boolean {
  if (end - start !== expected.length) return false;
  for (let at = 0; at < expected.length; at++) if (text[start + at] !== expected[at]) return false;
  return true;
}

/** NaN: it is no time, or absent. */
function msOf(stored: string | undefined): number {
  if (stored === undefined) return Number.NaN;
  return timestampTokenMs(Buffer.from(`"${stored}"`, "latin1"), 0, stored.length + 2);
}

/** The text of a JSON string, whose quotes are in [start, end). */
function stringIn(body: Buffer, start: number, end: number): string {
  const text = body.toString("utf8", start + 1, end - 1);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}
