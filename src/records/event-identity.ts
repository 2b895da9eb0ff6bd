import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { SentWith } from "../platform/base/sent-with.ts";
import { uuidAt } from "./record-template.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { uuidBytes } from "./uuid.ts";

const beforeTimestamp = Buffer.from(',"timestamp":"');
const beforeReceivedAt = Buffer.from('","received_at":"');
const beforeTimestampSent = Buffer.from('","timestamp_sent":"');
const beforeKind = Buffer.from('"kind":"');
const uuidEnd = uuidAt + uuidBytes;
/** One hash of copied parts takes a third of the time of several hashes. */
const parts = Buffer.allocUnsafe(16_384);

/**
 * Identifies the event of a record by what its client sent, so that a repeated event is recognised:
 * without a generated uuid, the times of receipt and sending, the address, and the correction of
 * the time. A record does not show what the gateway added, so `sentWith` must.
 */
export function eventIdentity(bytes: Buffer, sentWith: SentWith): string {
  // No text of a client contains these bytes, because quotes in it are escaped.
  const timestampAt = bytes.indexOf(beforeTimestamp, uuidEnd);
  const timeFrom = timestampAt + beforeTimestamp.length;
  const timeTo = timeFrom + storedTimestampBytes;
  const receivedAt = bytes.indexOf(beforeReceivedAt, timeTo);
  const kindAt = bytes.indexOf(beforeKind, receivedAt);
  const key = bytes.length > parts.length ? Buffer.allocUnsafe(bytes.length) : parts;
  let at = bytes.copy(key, 0, sentWith === SentWith.Uuid ? uuidAt : uuidEnd, timestampAt);
  if (sentWith === SentWith.Time) {
    const isCorrected = receivedAt > timeTo;
    const sentFrom = isCorrected ? timeTo + beforeTimestampSent.length : timeFrom;
    at += bytes.copy(key, at, sentFrom, sentFrom + storedTimestampBytes);
  }
  at += bytes.copy(key, at, kindAt);
  return hash("sha256", key.subarray(0, at), "base64url");
}
