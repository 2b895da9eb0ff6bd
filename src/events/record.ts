// The stored form of an event: one line of NDJSON, put together from byte slices of the body and constant text.
// The only place that knows the record's fields and their order. Must not decide anything: the verdict has.

import { Buffer } from "node:buffer";
import { FieldShift, Row, TokenType } from "../scan/table.ts";
import type { FrameSink, Lane } from "../types.ts";
import { type ItemView, typeAt } from "./item-view.ts";
import { isStoredForm, storedTimestampBytes, writeTimestamp } from "./timestamp.ts";
import { type UuidSource, uuidBytes } from "./uuid.ts";
import { type Kind, kinds, type Slice, type Verdict } from "./verdict.ts";

/** What all records of a request share. */
export interface RecordContext {
  readonly projectId: string;
  readonly lane: Lane;
  readonly receivedAtMs: number;
  /** NaN leaves the field out. */
  readonly sentAtMs: number;
  /** "" leaves the field out. */
  readonly clientAddress: string;
}

/** The constant text of one request's records, made once a request, written once a record. ASCII. */
export interface RecordFrame {
  readonly afterUuid: string;
  readonly receivedAt: string;
  readonly receivedAtMs: number;
  /** What the client calls now is known, and so timestamps may be stored otherwise than they came. */
  readonly hasSentAt: boolean;
  readonly afterTimestamp: string;
  readonly tails: ReadonlyMap<Kind, readonly [string, string]>;
}

const opening = '{"uuid":"';
const beforeDistinctId = ',"distinct_id":';
const beforeTimestamp = ',"timestamp":"';
const beforeTimestampSent = '","timestamp_sent":"';
const beforeSet = ',"$set":';
const beforeSetOnce = ',"$set_once":';
const beforeUnset = ',"$unset":';
const emptyProperties = "{}";
const closing = "}\n";

/** Fewest bytes an item takes in a body if it is stored: {"distinct_id":1} and a comma, where it needs no name. */
const storedItemBytesMin = 18;
/** What a record may take beyond its item's bytes: constant text, project id, address, generated id and times, an id that had to be escaped. */
export const recordOverheadBytesMax = 1_024;

/**
 * More than the records of a body take, but for what `$set` and its like inside `properties` take where they stand a second time. From the body
 * alone: it decides how a request is placed, also when it is sent again.
 */
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
  /**
   * Bytes the item's line takes at most. The same for a request that is sent again, and so its frames are, although the client's clock, as we
   * reckon it, is then another.
   */
  measure(item: ItemView, verdict: Verdict, frame: RecordFrame): number;
  /** Appends the item's line to the sink, which has room for what `measure` said. */
  write(item: ItemView, verdict: Verdict, frame: RecordFrame, sink: FrameSink): void;
}

export function createRecordWriter({ uuids }: { uuids: UuidSource }): RecordWriter {
  const receivedAt = new MomentText();
  const sentAt = new MomentText();

  function begin({ projectId, lane, receivedAtMs, sentAtMs, clientAddress }: RecordContext): RecordFrame {
    const hasSentAt = !Number.isNaN(sentAtMs);
    const received = receivedAt.of(receivedAtMs);
    const sent = hasSentAt ? `"sent_at":"${sentAt.of(sentAtMs)}",` : "";
    const address = clientAddress === "" ? "" : `"ip":"${clientAddress}",`;
    return {
      afterUuid: `","project_id":"${projectId}","event":`,
      receivedAt: received,
      receivedAtMs,
      hasSentAt,
      afterTimestamp: `","received_at":"${received}",${sent}${address}`,
      tails: lane === "historical" ? historicalTails : liveTails,
    };
  }

  function measure({ table, row }: ItemView, verdict: Verdict, frame: RecordFrame): number {
    const fields = table[row + Row.FieldTypes]!;
    let bytes = opening.length + uuidBytes + frame.afterUuid.length;
    bytes +=
      verdict.eventText === undefined
        ? table[row + Row.EventEnd]! - table[row + Row.EventStart]!
        : verdict.eventText.length + 2;
    bytes += beforeDistinctId.length;
    bytes +=
      verdict.distinctIdText === undefined
        ? verdict.distinctIdEnd - verdict.distinctIdStart
        : Buffer.byteLength(JSON.stringify(verdict.distinctIdText));
    bytes += beforeTimestamp.length + storedTimestampBytes + frame.afterTimestamp.length;
    if (hasSentTimestamp(verdict) && (frame.hasSentAt || isElsewhen(verdict))) {
      bytes += beforeTimestampSent.length + storedTimestampBytes;
    }
    bytes += tailOf(verdict, frame).length;
    bytes += isObjectAt(fields, FieldShift.Properties)
      ? table[row + Row.PropertiesEnd]! - table[row + Row.PropertiesStart]!
      : emptyProperties.length;
    if (verdict.hasPersonFields) bytes += personFieldsBytes(verdict);
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
    at +=
      verdict.eventText === undefined
        ? body.copy(target, at, table[row + Row.EventStart]!, table[row + Row.EventEnd]!)
        : target.write(`"${verdict.eventText}"`, at, "latin1");
    at += target.write(beforeDistinctId, at, "latin1");
    at +=
      verdict.distinctIdText === undefined
        ? body.copy(target, at, verdict.distinctIdStart, verdict.distinctIdEnd)
        : target.write(JSON.stringify(verdict.distinctIdText), at, "utf8");
    at += target.write(beforeTimestamp, at, "latin1");
    at = writeMoment(item, verdict, frame, target, at);
    if (hasSentTimestamp(verdict) && isElsewhen(verdict)) {
      at += target.write(beforeTimestampSent, at, "latin1");
      at = writeTimestamp(target, at, verdict.timestampSentMs);
    }
    at += target.write(frame.afterTimestamp, at, "latin1");
    at += target.write(tailOf(verdict, frame), at, "latin1");
    at += isObjectAt(fields, FieldShift.Properties)
      ? body.copy(target, at, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!)
      : target.write(emptyProperties, at, "latin1");
    if (verdict.hasPersonFields) {
      at = writeSlice(beforeSet, verdict.set, target, at);
      at = writeSlice(beforeSetOnce, verdict.setOnce, target, at);
      at = writeSlice(beforeUnset, verdict.unset, target, at);
    }
    at += target.write(closing, at, "latin1");
    sink.length = at;
    sink.events++;
  }

  /** To copy text takes a third of what it takes to write digits: most times are the client's or ours as they are. */
  function writeMoment(item: ItemView, verdict: Verdict, frame: RecordFrame, target: Buffer, at: number): number {
    if (verdict.timestampMs === frame.receivedAtMs) return at + target.write(frame.receivedAt, at, "latin1");
    if (isElsewhen(verdict)) return writeTimestamp(target, at, verdict.timestampMs);
    const start = item.table[item.row + Row.TimestampStart]! + 1;
    const end = item.table[item.row + Row.TimestampEnd]! - 1;
    if (!isStoredForm(item.body, start, end)) return writeTimestamp(target, at, verdict.timestampMs);
    return at + item.body.copy(target, at, start, end);
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

/** Requests come many in a millisecond: the text of the last one's moment is kept. */
class MomentText {
  #ms = Number.NaN;
  #text = "";

  of(ms: number): string {
    if (ms !== this.#ms) {
      this.#ms = ms;
      this.#text = new Date(ms).toISOString();
    }
    return this.#text;
  }
}

/** The client said when it was, and it can be read. */
function hasSentTimestamp({ timestampSentMs }: Verdict): boolean {
  return !Number.isNaN(timestampSentMs);
}

function isElsewhen({ timestampMs, timestampSentMs }: Verdict): boolean {
  return timestampMs !== timestampSentMs;
}

function personFieldsBytes({ set, setOnce, unset }: Verdict): number {
  return sliceBytes(beforeSet, set) + sliceBytes(beforeSetOnce, setOnce) + sliceBytes(beforeUnset, unset);
}

function sliceBytes(name: string, { start, end }: Slice): number {
  return end === 0 ? 0 : name.length + end - start;
}

function writeSlice(name: string, { bytes, start, end }: Slice, target: Buffer, at: number): number {
  if (end === 0) return at;
  const valueAt = at + target.write(name, at, "latin1");
  return valueAt + bytes.copy(target, valueAt, start, end);
}

function tailOf(verdict: Verdict, frame: RecordFrame): string {
  return frame.tails.get(verdict.kind)![verdict.personProfile ? 1 : 0];
}

function isObjectAt(fields: number, shift: number): boolean {
  return typeAt(fields, shift) === TokenType.Object;
}
