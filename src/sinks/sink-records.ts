// Reads the lines of a stored frame as records. Each line is scanned by itself, so that one that is
// no JSON spoils no other. What stands between the long values of a line as the gateway writes it
// is short and always the same, so it is told by two patterns; another spelling is read member by
// member. Properties are never taken apart.

import { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";
import { isProjectId } from "../base/forms.ts";
import { isString, typeAt } from "../events/item-view.ts";
import { timestampTokenMs } from "../events/timestamp.ts";
import { UuidForm, uuidForm } from "../events/uuid.ts";
import type { StoredFrame } from "../reading/stored-frame.ts";
import { JsonMembers } from "../scan/json-members.ts";
import { createNativeScanner } from "../scan/native.ts";
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
} from "../scan/table.ts";
import type { RejectedLine, RejectReason, SinkRecord } from "./sink-target.ts";

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
  readonly reason: RejectReason;

  constructor(reason: RejectReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

const time = '"([^"\\\\]{24})"';
const head = /^\{"uuid":"([0-9a-f-]{36})","project_id":"([A-Za-z0-9_-]{1,64})","event":$/;
const middle = new RegExp(
  `^(?:,"timestamp_sent":${time})?,"received_at":${time}(?:,"sent_at":${time})?(?:,"ip":"([^"\\\\]*)")?,"kind":"([a-z_]+)","person_profile":(true|false),"historical":(true|false),"properties":$`,
);
const beforeDistinctId = ',"distinct_id":';
const beforeTimestamp = ',"timestamp":';
const emptyObject = Buffer.from("{}");
const row = Header.Words;

export class SinkRecords {
  readonly #scanner = createNativeScanner(1);
  readonly #members = new JsonMembers(emptyObject);

  /** Tells the visitor of every line, in order. Blank lines are told to nobody. */
  read(frame: StoredFrame, visitor: RecordVisitor): void {
    const { data, stream, sequence, storedAtMs, projectId } = frame;
    const body = Buffer.from(data.buffer, data.byteOffset, data.length);
    let start = 0;
    for (let line = 0; start < body.length; line++) {
      const found = body.indexOf(Ascii.LineFeed, start);
      const end = found < 0 ? body.length : found;
      const text = body.subarray(start, end);
      start = end + 1;
      const place = { stream, sequence, line, storedAtMs, text };
      try {
        const fields = this.#fieldsOf(text);
        if (fields === undefined) continue;
        if (projectId !== undefined && fields.projectId !== projectId)
          throw new LineFault(
            "wrong_project",
            `it says that it is of the project ${fields.projectId}`,
          );
        visitor.record({ ...place, ...fields, personUuid: "" });
      } catch (error) {
        if (!(error instanceof LineFault)) throw error;
        const { reason, message: detail } = error;
        visitor.rejected({ ...place, projectId: projectId ?? "", reason, detail });
      }
    }
  }

  /** Undefined: the line is blank. */
  #fieldsOf(text: Buffer): Fields | undefined {
    const { table } = this.#scanner;
    const status = this.#scanner.scan(text);
    if (status === ScanStatus.OutOfMemory) throw new Error("scanning a line: no memory");
    if (status === ScanStatus.Empty) return undefined;
    if (status !== ScanStatus.Ok) {
      const what = status === ScanStatus.InvalidUtf8 ? "UTF-8" : "JSON";
      const at = table[Header.ErrorOffset]!;
      throw new LineFault("not_json", `it is not ${what} from byte ${at} on`);
    }
    if (table[Header.RootType] !== TokenType.Object)
      throw new LineFault("not_a_record", "it is no object");
    const isItem = table[Header.BatchType] === TokenType.Absent;
    return (isItem ? this.#asWritten(text) : undefined) ?? this.#byMembers(text);
  }

  /** Undefined: it is not spelt as the gateway does. */
  #asWritten(text: Buffer): Fields | undefined {
    const { table } = this.#scanner;
    const [eventStart, eventEnd] = [table[row + Row.EventStart]!, table[row + Row.EventEnd]!];
    const [idStart, idEnd] = [table[row + Row.DistinctIdStart]!, table[row + Row.DistinctIdEnd]!];
    const [timeStart, timeEnd] = [table[row + Row.TimestampStart]!, table[row + Row.TimestampEnd]!];
    const propertiesStart = table[row + Row.PropertiesStart]!;
    const types = table[row + Row.FieldTypes]!;
    if (
      !isString(typeAt(types, FieldShift.Event)) ||
      !isString(typeAt(types, FieldShift.DistinctId)) ||
      typeAt(types, FieldShift.Properties) !== TokenType.Object
    )
      return undefined;
    const first = head.exec(text.toString("latin1", 0, eventStart));
    const second = middle.exec(text.toString("latin1", timeEnd, propertiesStart));
    if (
      first === null ||
      second === null ||
      text.toString("latin1", eventEnd, idStart) !== beforeDistinctId ||
      text.toString("latin1", idEnd, timeStart) !== beforeTimestamp
    )
      return undefined;
    const timestampMs = timestampTokenMs(text, timeStart, timeEnd);
    const receivedAtMs = msOf(second[2]);
    if (Number.isNaN(timestampMs) || Number.isNaN(receivedAtMs)) return undefined;
    return {
      uuid: first[1]!,
      projectId: first[2]!,
      event: stringIn(text, eventStart, eventEnd),
      distinctId: stringIn(text, idStart, idEnd),
      timestampMs,
      receivedAtMs,
      timestampSentMs: msOf(second[1]),
      sentAtMs: msOf(second[3]),
      ip: second[4] ?? "",
      kind: second[5]!,
      personProfile: second[6] === "true",
      historical: second[7] === "true",
      properties: text.subarray(propertiesStart, table[row + Row.PropertiesEnd]),
      ...this.#personFields(text),
    };
  }

  #personFields(text: Buffer): Pick<Fields, "set" | "setOnce" | "unset"> {
    const { table } = this.#scanner;
    const types = table[row + Row.FieldTypes]!;
    const at = (type: TokenType, wanted: TokenType, word: number): Buffer | undefined =>
      type === wanted ? text.subarray(table[word], table[word + 1]) : undefined;
    const extra = extraOf(table, row);
    const unset = hasExtra(table, row)
      ? typeAt(table[extra + Extra.Types]!, ExtraShift.Unset)
      : TokenType.Absent;
    return {
      set: at(typeAt(types, FieldShift.Set), TokenType.Object, row + Row.SetStart),
      setOnce: at(typeAt(types, FieldShift.SetOnce), TokenType.Object, row + Row.SetOnceStart),
      unset: at(unset, TokenType.Array, extra + Extra.UnsetStart),
    };
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
      if (value === undefined) throw new LineFault("not_a_record", `it has no ${name}`);
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
    const form = uuidForm(Buffer.from(uuid, "latin1"), 0, uuid.length);
    if (form === UuidForm.None) throw new LineFault("not_a_record", "its uuid is no UUID");
    const projectId = needed("project_id");
    if (!isProjectId(projectId)) throw new LineFault("not_a_record", "its project_id is none");
    const timestampMs = ms("timestamp");
    if (Number.isNaN(timestampMs)) throw new LineFault("not_a_record", "its timestamp is none");
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
      properties: json("properties", TokenType.Object) ?? emptyObject,
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

/** NaN: it is no time, or absent. */
function msOf(stored: string | undefined): number {
  return stored === undefined ? Number.NaN : Date.parse(stored);
}

/** The text of a JSON string, whose quotes are in [start, end). */
function stringIn(body: Buffer, start: number, end: number): string {
  const text = body.toString("utf8", start + 1, end - 1);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}
