// By what an event is known again where only a uuid has room: two events under one uuid are two, as
// PostHog takes them, if their names or distinct ids differ.

import { hash } from "node:crypto";
import type { SinkRecord } from "./sink-records.ts";

/**
 * A text in the form of a uuid that stands for uuid, name and distinct id. Its first half is that of
 * the uuid, so that neighbours in an index stay neighbours. Databases hold it: it may never change.
 */
export function eventKey({
  uuid,
  event,
  distinctId,
}: Pick<SinkRecord, "uuid" | "event" | "distinctId">): string {
  const names = JSON.stringify([uuid, event, distinctId]);
  const digest = hash("sha256", names, "hex");
  return `${uuid.slice(0, 19)}${digest.slice(0, 4)}-${digest.slice(4, 16)}`;
}
