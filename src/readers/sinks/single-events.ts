// Removes duplicates within a batch: the first event of each key stays.

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

/** Finds the copy to try if a target rejects an event. */
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
