// When an event happened. Its `offset` counts first, then its `timestamp` less what the client's
// clock is ahead of ours, then the time of receipt. The clock's error is the time that the client
// sent the request (`sent_at`) less the time of receipt, so the request's way is a part of it.

import type { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  hasExtra,
  MoreShift,
  Row,
  TokenType,
} from "../scan/table.ts";
import { extraTypes, type ItemView, isNothing, typeAt } from "./item-view.ts";
import { otherFormMs } from "./other-date-forms.ts";
import { storedMsMin, timestampTokenMs } from "./timestamp.ts";
import { type RequestFacts, type Verdict, warningBit } from "./verdict.ts";

/**
 * An event may be so far ahead of us; what is further says that nobody has set the client's clock.
 */
const aheadMsMax = 23 * 3_600_000;

/**
 * Digits of an offset that are added up as they stand; one with more, or with a fraction, is read
 * like other numbers.
 */
const plainDigitsMax = 15;
const DIGIT_0 = 0x30;

export function judgeTime(item: ItemView, request: RequestFacts, verdict: Verdict): void {
  const { body, table, row } = item;
  const { receivedAtMs } = request;
  const isAbsent = isNothing(typeAt(table[row + Row.FieldTypes]!, FieldShift.Timestamp));
  if (isAbsent && !hasExtra(table, row)) {
    // The event does not say when it happened.
    verdict.timestampSentMs = Number.NaN;
    verdict.timestampMs = receivedAtMs;
    if (request.needsTimestamp) verdict.warnings |= warningBit.missing_timestamp;
    return;
  }
  let sentMs = Number.NaN;
  if (!isAbsent) {
    sentMs = timestampTokenMs(
      body,
      table[row + Row.TimestampStart]!,
      table[row + Row.TimestampEnd]!,
    );
    if (Number.isNaN(sentMs))
      sentMs = otherFormMs(body, table[row + Row.TimestampStart]!, table[row + Row.TimestampEnd]!);
    if (Number.isNaN(sentMs)) verdict.warnings |= warningBit.invalid_timestamp;
  }
  verdict.timestampSentMs = sentMs;
  const ignoresSentAt =
    typeAt(table[row + Row.MoreTypes]!, MoreShift.IgnoreSentAt) === TokenType.True;
  let ms = ignoresSentAt ? sentMs : sentMs - request.skewMs;
  const offsetType = typeAt(extraTypes(item), ExtraShift.Offset);
  if (!isNothing(offsetType)) {
    const byOffset =
      offsetType === TokenType.Number ? Math.round(receivedAtMs - readOffset(item)) : Number.NaN;
    if (byOffset >= storedMsMin) ms = byOffset;
    else verdict.warnings |= warningBit.invalid_offset;
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

/**
 * Milliseconds that passed on the client between event and request; an infinity for a number that
 * no double holds.
 */
function readOffset({ body, table, row }: ItemView): number {
  const extra = extraOf(table, row);
  const start = table[extra + Extra.OffsetStart]!;
  const end = table[extra + Extra.OffsetEnd]!;
  const plain = plainInteger(body, start, end);
  return Number.isNaN(plain) ? Number(body.toString("latin1", start, end)) : plain;
}

/** posthog-js sends an offset with every event, so no string is made for those. */
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
