// Determines the time of an event. If the event has an `offset`, the time is the time of receipt
// minus the offset. Otherwise, if it has a `timestamp`, the time is the timestamp minus the error
// of the client's clock. This error is `sent_at` minus the time of receipt. If it has neither, the
// time is the time of receipt.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { extraTypes, type ItemView, isNothing, typeAt } from "./item-view.ts";
import { clientTimeMs, isZeroTime } from "./other-date-forms.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  hasExtra,
  PropertyShift,
  Row,
  TokenType,
} from "./table.ts";
import { storedMsMin } from "./timestamp.ts";
import { keepReplaced, type RequestFacts, type Verdict, warningBit } from "./verdict.ts";

/** If a time is further in the future, the clock of the client was probably never set. */
export const aheadMsMax = 23 * 3_600_000;

const plainDigitsMax = 15;
const DIGIT_0 = 0x30;

export function judgeTime(item: ItemView, request: RequestFacts, verdict: Verdict): void {
  const { body, table, row } = item;
  const { receivedAtMs } = request;
  const isAbsent = isNothing(typeAt(table[row + Row.FieldTypes]!, FieldShift.Timestamp));
  if (isAbsent && !hasExtra(table, row)) {
    verdict.timestampSentMs = Number.NaN;
    verdict.timestampMs = receivedAtMs;
    if (request.needsTimestamp) verdict.warnings |= warningBit.missing_timestamp;
    return;
  }
  let sentMs = Number.NaN;
  if (!isAbsent) {
    const start = table[row + Row.TimestampStart]!;
    const end = table[row + Row.TimestampEnd]!;
    sentMs = clientTimeMs(body, start, end);
    const isZero = isZeroTime(sentMs);
    if (isZero || Number.isNaN(sentMs)) {
      sentMs = Number.NaN;
      verdict.warnings |= isZero ? warningBit.zero_timestamp : warningBit.invalid_timestamp;
      keepReplaced(verdict, "timestamp", body.subarray(start, end));
    }
  }
  verdict.timestampSentMs = sentMs;
  const ignoresSentAt =
    typeAt(table[row + Row.PropertyTypes]!, PropertyShift.IgnoreSentAt) === TokenType.True;
  let ms = ignoresSentAt ? sentMs : sentMs - request.skewMs;
  const offsetType = typeAt(extraTypes(item), ExtraShift.Offset);
  if (!isNothing(offsetType)) {
    const byOffset =
      offsetType === TokenType.Number ? Math.round(receivedAtMs - readOffset(item)) : Number.NaN;
    if (byOffset >= storedMsMin) ms = byOffset;
    else {
      verdict.warnings |= warningBit.invalid_offset;
      keepReplaced(verdict, "offset", offsetToken(item));
    }
  }
  if (ms >= storedMsMin && ms <= receivedAtMs + aheadMsMax) {
    verdict.timestampMs = ms;
    return;
  }
  verdict.timestampMs = receivedAtMs;
  if (ms > receivedAtMs) verdict.warnings |= warningBit.timestamp_in_future;
  else if (ms < storedMsMin) verdict.warnings |= warningBit.invalid_timestamp;
  else if (request.needsTimestamp && isAbsent) verdict.warnings |= warningBit.missing_timestamp;
}

function offsetToken({ body, table, row }: ItemView): Buffer {
  const extra = extraOf(table, row);
  return body.subarray(table[extra + Extra.OffsetStart]!, table[extra + Extra.OffsetEnd]!);
}

/**
 * Returns the milliseconds between the event and its request, measured by the client's clock. The
 * result may be Infinity.
 */
function readOffset({ body, table, row }: ItemView): number {
  const extra = extraOf(table, row);
  const start = table[extra + Extra.OffsetStart]!;
  const end = table[extra + Extra.OffsetEnd]!;
  const plain = plainInteger(body, start, end);
  return Number.isNaN(plain) ? Number(body.toString("latin1", start, end)) : plain;
}

/**
 * Parses an integer without creating a string, because posthog-js sends an integer. Returns NaN for
 * other numbers.
 */
function plainInteger(body: Buffer, start: number, end: number): number {
  const first = body[start] === Ascii.Minus ? start + 1 : start;
  if (end - first > plainDigitsMax) return Number.NaN;
  let value = 0;
  for (let at = first; at < end; at++) {
    const digit = body[at]! - DIGIT_0;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  return first === start ? value : -value;
}
