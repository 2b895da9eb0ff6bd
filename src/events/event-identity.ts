// Names a stored event by what its client sent, so that the event is known again when it is sent a
// second time. Left out is what the gateway adds: the uuid of an event that came without one, the
// times of receipt and of sending, the address, and the time that is corrected by the client's clock.

import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { uuidAt } from "./record-template.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { uuidBytes } from "./uuid.ts";

const beforeTimestamp = ',"timestamp":"';
const beforeReceivedAt = '","received_at":"';
const beforeTimestampSent = '","timestamp_sent":"';
const sentBytes = beforeTimestampSent.length;
const beforeKind = '"kind":"';

/**
 * The identity of the event in the record `bytes`. Another sending of the event has the same one.
 * Exception: an event that has neither a uuid nor a timestamp, but an `offset`.
 */
export function eventIdentity(bytes: Buffer): string {
  // No text that a client sent holds these: its quotes are escaped, or end it.
  const timestampAt = bytes.indexOf(beforeTimestamp, uuidAt, "latin1");
  const timeFrom = timestampAt + beforeTimestamp.length;
  const receivedAt = bytes.indexOf(beforeReceivedAt, timeFrom, "latin1");
  const receivedFrom = receivedAt + beforeReceivedAt.length;
  const receivedTo = receivedFrom + storedTimestampBytes;
  const kindAt = bytes.indexOf(beforeKind, receivedTo, "latin1");
  const uuid = bytes.toString("latin1", uuidAt, uuidAt + uuidBytes);
  const received = bytes.toString("latin1", receivedFrom, receivedTo);
  const timeTo = timeFrom + storedTimestampBytes;
  const isCorrected = bytes.toString("latin1", timeTo, timeTo + sentBytes) === beforeTimestampSent;
  const sentFrom = isCorrected ? timeTo + sentBytes : timeFrom;
  const sentTo = sentFrom + storedTimestampBytes;
  const time = bytes.toString("latin1", sentFrom, sentTo);
  return createHash("sha256")
    .update(isGenerated(uuid, received) ? "" : uuid)
    .update(bytes.subarray(uuidAt + uuidBytes, timestampAt))
    .update(time === received ? "" : time)
    .update(bytes.subarray(sentTo, receivedAt))
    .update(bytes.subarray(kindAt))
    .digest("base64url");
}

/** Whether the uuid is one that the gateway gave: of version 7, and of the time of receipt. */
function isGenerated(uuid: string, received: string): boolean {
  const time = Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
  return uuid[14] === "7" && time === Date.parse(received);
}
