// Writes the form of an event that is stored. It is one line of NDJSON, which consists of slices of
// the body and of constant text.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { FrameSink } from "./frame-sink.ts";
import { type ItemView, typeAt } from "./item-view.ts";
import {
  type RecordContext,
  type RecordTemplate,
  RecordTemplates,
  uuidAt,
} from "./record-template.ts";
import { FieldShift, Row, TokenType } from "./table.ts";
import { isStoredForm, storedTimestampBytes, writeTimestamp } from "./timestamp.ts";
import { type UuidSource, uuidBytes } from "./uuid.ts";
import type { Slice, Verdict } from "./verdict.ts";

const beforeDistinctId = ascii(',"distinct_id":');
const beforeTimestamp = ascii(',"timestamp":"');
const beforeTimestampSent = ascii('","timestamp_sent":"');
const beforeSet = ascii(',"$set":');
const beforeSetOnce = ascii(',"$set_once":');
const beforeUnset = ascii(',"$unset":');
const beforeReplaced = ascii(',"replaced":{');
const emptyProperties = ascii("{}");
const closingBytes = 2;

/** The smallest item that can be stored is `{"distinct_id":1}` and a comma. */
const storedItemBytesMin = 18;
/** This is enough for the constant text, the timestamps, and an escaped distinct id. */
export const recordOverheadBytesMax = 1_024;

/**
 * Returns an upper bound of the bytes of all records. It depends only on the body, so that a retry
 * is divided into the same frames.
 */
export function recordsBytesPlanned(bodyBytes: number, itemCount: number): number {
  return (
    bodyBytes +
    Math.min(itemCount, Math.ceil(bodyBytes / storedItemBytesMin)) * recordOverheadBytesMax
  );
}

/**
 * A larger historical request gets its own frames. These are necessary to recognise an import that
 * is repeated.
 */
export const sharedHistoryBytesMax = 524_288;

/**
 * This is the size of the constant text, project id, address, id and timestamps, minus the commas
 * of an item.
 */
const recordOverheadBytes = 256;

export function recordsBytesLikely(bodyBytes: number, itemCount: number): number {
  return (
    bodyBytes + Math.min(itemCount, Math.ceil(bodyBytes / storedItemBytesMin)) * recordOverheadBytes
  );
}

export interface RecordWriter {
  begin(context: RecordContext): RecordTemplate;
  /**
   * Returns the maximum size of the record. The result does not depend on the client's clock, so
   * that a retry is divided into the same frames.
   */
  measure(item: ItemView, verdict: Verdict, template: RecordTemplate): number;
  /** Writes a record. The sink must have at least the space that `measure` has returned. */
  write(item: ItemView, verdict: Verdict, template: RecordTemplate, sink: FrameSink): void;
}

interface RecordWriterOptions {
  readonly uuids: Pick<UuidSource, "write">;
}

export class JsonRecordWriter implements RecordWriter {
  readonly #uuids: RecordWriterOptions["uuids"];
  readonly #templates = new RecordTemplates();

  constructor({ uuids }: RecordWriterOptions) {
    this.#uuids = uuids;
  }

  begin(context: RecordContext): RecordTemplate {
    return this.#templates.templateOf(context);
  }

  measure({ table, row }: ItemView, verdict: Verdict, template: RecordTemplate): number {
    let bytes =
      template.head.length +
      beforeDistinctId.length +
      beforeTimestamp.length +
      storedTimestampBytes;
    bytes += template.endBytes(verdict) + closingBytes;
    bytes +=
      verdict.eventText === undefined
        ? table[row + Row.EventEnd]! - table[row + Row.EventStart]!
        : verdict.eventText.length + 2;
    bytes +=
      verdict.distinctIdText === undefined
        ? verdict.distinctIdEnd - verdict.distinctIdStart
        : Buffer.byteLength(JSON.stringify(verdict.distinctIdText));
    if (hasSentTimestamp(verdict) && (template.hasSentAt || isElsewhen(verdict)))
      bytes += beforeTimestampSent.length + storedTimestampBytes;
    bytes += hasProperties(table, row)
      ? table[row + Row.PropertiesEnd]! - table[row + Row.PropertiesStart]!
      : emptyProperties.length;
    if (verdict.replaced !== "")
      bytes += beforeReplaced.length + Buffer.byteLength(verdict.replaced) + 1;
    if (verdict.schema !== undefined) bytes += verdict.schema.length;
    return verdict.hasPersonFields ? bytes + personFieldsBytes(verdict) : bytes;
  }

  write(item: ItemView, verdict: Verdict, template: RecordTemplate, sink: FrameSink): void {
    const { body, table, row } = item;
    const target = sink.buffer;
    let at = sink.length;
    const end = put(template.head, target, at);
    if (verdict.uuid === "new") this.#uuids.write(target, at + uuidAt, template.receivedAtMs);
    else writeUuid(item, verdict, target, at + uuidAt);
    at = end;
    at +=
      verdict.eventText === undefined
        ? body.copy(target, at, table[row + Row.EventStart]!, table[row + Row.EventEnd]!)
        : target.write(`"${verdict.eventText}"`, at, "latin1");
    at = put(beforeDistinctId, target, at);
    at +=
      verdict.distinctIdText === undefined
        ? body.copy(target, at, verdict.distinctIdStart, verdict.distinctIdEnd)
        : target.write(JSON.stringify(verdict.distinctIdText), at, "utf8");
    at = put(beforeTimestamp, target, at);
    at = writeMoment(item, verdict, template, target, at);
    if (hasSentTimestamp(verdict) && isElsewhen(verdict)) {
      at = put(beforeTimestampSent, target, at);
      at = writeTimestamp(target, at, verdict.timestampSentMs);
    }
    at = template.writeEnd(verdict, target, at);
    at = hasProperties(table, row)
      ? at +
        body.copy(target, at, table[row + Row.PropertiesStart]!, table[row + Row.PropertiesEnd]!)
      : put(emptyProperties, target, at);
    if (verdict.hasPersonFields) {
      at = writeSlice(beforeSet, verdict.set, target, at);
      at = writeSlice(beforeSetOnce, verdict.setOnce, target, at);
      at = writeSlice(beforeUnset, verdict.unset, target, at);
    }
    if (verdict.replaced !== "") {
      at = put(beforeReplaced, target, at);
      at += target.write(verdict.replaced, at, "utf8");
      target[at++] = Ascii.CloseBrace;
    }
    if (verdict.schema !== undefined) at = put(verdict.schema, target, at);
    target[at] = Ascii.CloseBrace;
    target[at + 1] = Ascii.LineFeed;
    sink.commit(at + closingBytes, 1);
  }
}

/** Writes a whole text, which is faster with `set` than with `copy`. Returns its end. */
function put(text: Buffer, target: Buffer, at: number): number {
  target.set(text, at);
  return at + text.length;
}

/**
 * Writes the time of the event. If possible, it copies the timestamp from the body, because this is
 * three times as fast.
 */
function writeMoment(
  item: ItemView,
  verdict: Verdict,
  template: RecordTemplate,
  target: Buffer,
  at: number,
): number {
  if (verdict.timestampMs === template.receivedAtMs) return template.writeReceivedAt(target, at);
  if (isElsewhen(verdict)) return writeTimestamp(target, at, verdict.timestampMs);
  const start = item.table[item.row + Row.TimestampStart]! + 1;
  const end = item.table[item.row + Row.TimestampEnd]! - 1;
  if (!isStoredForm(item.body, start, end)) return writeTimestamp(target, at, verdict.timestampMs);
  return at + item.body.copy(target, at, start, end);
}

function writeUuid(item: ItemView, verdict: Verdict, target: Buffer, at: number): void {
  if (verdict.uuid === "sent") {
    const start = item.table[item.row + Row.UuidStart]! + 1;
    item.body.copy(target, at, start, start + uuidBytes);
  } else {
    target.write(verdict.uuidText, at, "latin1");
  }
}

function hasSentTimestamp({ timestampSentMs }: Verdict): boolean {
  return !Number.isNaN(timestampSentMs);
}

function isElsewhen({ timestampMs, timestampSentMs }: Verdict): boolean {
  return timestampMs !== timestampSentMs;
}

function personFieldsBytes({ set, setOnce, unset }: Verdict): number {
  return (
    sliceBytes(beforeSet, set) + sliceBytes(beforeSetOnce, setOnce) + sliceBytes(beforeUnset, unset)
  );
}

function sliceBytes(name: Buffer, { start, end }: Slice): number {
  return end === 0 ? 0 : name.length + end - start;
}

function writeSlice(
  name: Buffer,
  { bytes, start, end }: Slice,
  target: Buffer,
  at: number,
): number {
  if (end === 0) return at;
  const valueAt = put(name, target, at);
  return valueAt + bytes.copy(target, valueAt, start, end);
}

function hasProperties(table: Uint32Array, row: number): boolean {
  return typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties) === TokenType.Object;
}

function ascii(text: string): Buffer {
  return Buffer.from(text, "latin1");
}
