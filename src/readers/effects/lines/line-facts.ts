// What both ways of reading a line have in common: the rules by which fields become facts.

import { Kind } from "../../../records/verdict.ts";
import type { EventFacts } from "../rules/event-facts.ts";
import { cookielessId } from "../rules/illegal-ids.ts";
import type { UsageClass } from "../types.ts";

/**
 * A line that says it was received so long after its frame was stored was not: no clock is so far
 * ahead.
 */
const aheadMsMax = 86_400_000;

/** When the line was received; when its frame was stored, where it does not say so credibly. */
export function boundReceivedMs(receivedAtMs: number, storedAtMs: number): number {
  return receivedAtMs <= storedAtMs + aheadMsMax ? receivedAtMs : storedAtMs;
}

/** When it happened, by a time that may be NaN; but not later than it was received. */
export function boundTimeMs(ms: number, receivedAtMs: number): number {
  return Number.isNaN(ms) ? receivedAtMs : Math.min(ms, receivedAtMs);
}

/** The first class that fits counts. */
export function usageClassOf({ kind, personProfile, distinctId }: EventFacts): UsageClass {
  if (kind === Kind.GroupIdentify) return "group_identify";
  if (!personProfile || distinctId === cookielessId) return "anonymous";
  if (kind === Kind.Identify) return "identify";
  if (kind === Kind.Alias) return "alias";
  return kind === Kind.Survey ? "survey" : "identified";
}
