// Identifies an event where there is room for one uuid only. As in PostHog, two events with the
// same uuid are different if their names or distinct ids differ.

import { hash } from "node:crypto";
import type { SinkRecord } from "./sink-records.ts";

/**
 * Returns a text in the form of a uuid, derived from uuid, name and distinct id. Its first half is
 * that of the uuid, so that neighbours in an index stay neighbours. Databases store it: it must
 * never change.
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
