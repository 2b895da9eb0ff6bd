// The stored form of an event: one line of NDJSON, put together from byte slices of the body and constant text.
// The only place that knows the record's fields and their order. Must not decide anything: the verdict has.

import { Buffer } from "node:buffer";
import { FieldShift, Row, TokenType } from "../scan/table.ts";
import type { FrameSink, Lane } from "../types.ts";
import { type ItemView, type Kind, kinds, type Verdict } from "./guards.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { type UuidSource, uuidBytes } from "./uuid.ts";

/** What all records of a request share. */
export interface RecordContext {
  readonly projectId: string;
  readonly lane: Lane;
  readonly receivedAtMs: number;
  /** "" leaves the field out. */
  readonly clientAddress: string;
}

/** The constant text of one request's records, made once a request, written once a record. ASCII. */
export interface RecordFrame {
  readonly afterUuid: string;
  readonly receivedAt: string;
  readonly receivedAtMs: number;
  readonly afterTimestamp: string;
  readonly tails: ReadonlyMap<Kind, readonly [string, string]>;
}

const opening = '{"uuid":"';
const beforeDistinctId = ',"distinct_id":';
const beforeTimestamp = ',"timestamp":"';
const beforeSet = ',"$set":';
const beforeSetOnce = ',"$set_once":';
const emptyProperties = "{}";
const closing = "}\n";

/** Fewest bytes an item takes in a body if it is stored: {"event":"a","distinct_id":1} and a comma. */
const storedItemBytesMin = 29;
/** What a record may take beyond its item's bytes: constant text, project id, address, generated id and times, an id that had to be escaped. */
export const recordOverheadBytesMax = 1_024;

/** More than the records of a body can take. From the body alone: it decides how a request is placed, also when it is sent again. */
export function recordsBytesMax(bodyBytes: number, itemCount: number): number {
  return bodyBytes + Math.min(itemCount, Math.ceil(bodyBytes / storedItemBytesMin)) * recordOverheadBytesMax;
}

/** What constant text, project id, address, id and times of a record commonly come to, less the punctuation of its item. */
const recordOverheadBytes = 256;

/** About what the records of a body take, were all its items stored: nothing is stored to find out. */
export function recordsBytesLikely(bodyBytes: number, itemCount: number): number {
  return bodyBytes + Math.min(itemCount, Math.ceil(bodyBytes / storedItemBytesMin)) * recordOverheadBytes;
}

/** [without person profile, with it] for each kind. */
function tailsOf(historical: boolean): ReadonlyMap<Kind, readonly [string, string]> {
  const tail = (kind: Kind, personProfile: boolean) =>
    `"kind":"${kind}","person_profile":${personProfile},"historical":${historical},"properties":`;
  return new Map(kinds.map((kind) => [kind, [tail(kind, false), tail(kind, true)]]));
}

const liveTails = tailsOf(false);
const historicalTails = tailsOf(true);

export interface RecordWriter {
  begin(context: RecordContext): RecordFrame;
  /** Bytes the item's line takes. */
  measure(item: ItemView, verdict: Verdict, frame: RecordFrame): number;
  /** Appends the item's line to the sink, which has room for what `measure` said. */
  write(item: ItemView, verdict: Verdict, frame: RecordFrame, sink: FrameSink): void;
}

export function createRecordWriter({ uuids }: { uuids: UuidSource }): RecordWriter {
  let isoMs = Number.NaN;
  let iso = "";

  function begin(context: RecordContext): RecordFrame {
    if (context.receivedAtMs !== isoMs) {
      isoMs = context.receivedAtMs;
      iso = new Date(isoMs).toISOString();
    }
    const address = context.clientAddress === "" ? "" : `"ip":"${context.clientAddress}",`;
    return {
      afterUuid: `","project_id":"${context.projectId}","event":`,
      receivedAt: iso,
      receivedAtMs: context.receivedAtMs,
      afterTimestamp: `","received_at":"${iso}",${address}`,
      tails: context.lane === "historical" ? historicalTails : liveTails,
    };
  }

  function measure({ table, row }: ItemView, verdict: Verdict, frame: RecordFrame): number {
    const fields = table[row + Row.FieldTypes]!;
    let bytes = opening.length + uuidBytes + frame.afterUuid.length;
    bytes += table[row + Row.EventEnd]! - table[row + Row.EventStart]!;
    bytes += beforeDistinctId.length;
    bytes +=
      verdict.distinctIdText === undefined
        ? verdict.distinctIdEnd - verdict.distinctIdStart
        : Buffer.byteLength(JSON.stringify(verdict.distinctIdText));
    bytes += beforeTimestamp.length + storedTimestampBytes + frame.afterTimestamp.length;
    bytes += tailOf(verdict, frame).length;
    bytes += isObjectAt(fields, FieldShift.Properties)
      ? table[row + Row.PropertiesEnd]! - table[row + Row.PropertiesStart]!
      : emptyProperties.length;
    if (isObjectAt(fields, FieldShift.Set)) {
      bytes += beforeSet.length + table[row + Row.SetEnd]! - table[row + Row.SetStart]!;
    }
    if (isObjectAt(fields, FieldShift.SetOnce)) {
      bytes += beforeSetOnce.length + table[row + Row.SetOnceEnd]! - table[row + Row.SetOnceStart]!;
    }
    return bytes + closing.length;
  }

  function write(item: ItemView, verdict: Verdict, frame: RecordFrame, sink: FrameSink): void {
    const { body, table, row } = item;
    const fields = table[row + Row.FieldTypes]!;
    const target = sink.buffer;
    let at = sink.length;
    at += target.write(opening, at, "latin1");
    at = writeUuid(item, verdict, frame, target, at);
    at += target.write(frame.afterUuid, at, "latin1");
    at += body.copy(target, at, table[row + Row.EventStart]!, table[row + Row.EventEnd]!);
    at += target.write(beforeDistinctId, at, "latin1");
    at +=
      verdict.distinctIdText === undefined
        ? body.copy(target, at, verdict.distinctIdStart, verdict.distinctIdEnd)
        : target.write(JSON.stringify(verdict.distinctIdText), at, "utf8");
    at += target.write(beforeTimestamp, at, "latin1");
    at = writeTimestamp(item, verdict, frame, target, at);
    at += target.write(frame.afterTimestamp, at, "latin1");
    at += target.write(tailOf(verdict, frame), at, "latin1");
    at += isObjectAt(fields, FieldShift.Properties)
      ? body.copy(target, at, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!)
      : target.write(emptyProperties, at, "latin1");
    if (isObjectAt(fields, FieldShift.Set)) {
      at += target.write(beforeSet, at, "latin1");
      at += body.copy(target, at, table[row + Row.SetStart]!, table[row + Row.SetEnd]!);
    }
    if (isObjectAt(fields, FieldShift.SetOnce)) {
      at += target.write(beforeSetOnce, at, "latin1");
      at += body.copy(target, at, table[row + Row.SetOnceStart]!, table[row + Row.SetOnceEnd]!);
    }
    at += target.write(closing, at, "latin1");
    sink.length = at;
    sink.events++;
  }

  function writeUuid(item: ItemView, verdict: Verdict, frame: RecordFrame, target: Buffer, at: number): number {
    if (verdict.uuid === "new") {
      uuids.write(target, at, frame.receivedAtMs);
      return at + uuidBytes;
    }
    if (verdict.uuid === "converted") return at + target.write(verdict.uuidText, at, "latin1");
    const start = item.table[item.row + Row.UuidStart]! + 1;
    return at + item.body.copy(target, at, start, start + uuidBytes);
  }

  return { begin, measure, write };
}

function writeTimestamp(item: ItemView, verdict: Verdict, frame: RecordFrame, target: Buffer, at: number): number {
  if (verdict.timestamp === "sent") {
    const start = item.table[item.row + Row.TimestampStart]! + 1;
    return at + item.body.copy(target, at, start, start + storedTimestampBytes);
  }
  return at + target.write(verdict.timestamp === "received" ? frame.receivedAt : verdict.timestampText, at, "latin1");
}

function tailOf(verdict: Verdict, frame: RecordFrame): string {
  return frame.tails.get(verdict.kind)![verdict.personProfile ? 1 : 0];
}

function isObjectAt(fields: number, shift: number): boolean {
  return ((fields >>> shift) & 0xf) === TokenType.Object;
}
