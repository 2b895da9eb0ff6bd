// Removes duplicates from a batch: the first event of each project, uuid, name and distinct id
// stays. Also finds the next copy of an event, for a target that rejects the first one.

import type { SinkRecord } from "./sink-records.ts";

export function singleEvents(events: readonly SinkRecord[]): SinkRecord[] {
  const seen = new Set<string>();
  return events.filter((event) => {
    const key = keyOf(event);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Returns the next copy of each event that has one. */
export function nextCopies(events: readonly SinkRecord[]): Map<SinkRecord, SinkRecord> {
  const last = new Map<string, SinkRecord>();
  const next = new Map<SinkRecord, SinkRecord>();
  for (const event of events) {
    const key = keyOf(event);
    const before = last.get(key);
    if (before !== undefined) next.set(before, event);
    last.set(key, event);
  }
  return next;
}

function keyOf({ uuid, projectId, event, distinctId }: SinkRecord): string {
  return JSON.stringify([uuid, projectId, event, distinctId]);
}
