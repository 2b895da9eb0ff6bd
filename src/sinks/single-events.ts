// The events of a batch with each uuid of a project once: the first of those that are the same. And
// the one that comes after each, for a target that does not take the first.

import type { SinkRecord } from "./sink-target.ts";

export function singleEvents(events: readonly SinkRecord[]): SinkRecord[] {
  const seen = new Set<string>();
  return events.filter((event) => {
    const key = keyOf(event);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** By an event, the next one of the same uuid and project. */
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

function keyOf({ uuid, projectId }: SinkRecord): string {
  return `${uuid}${projectId}`;
}
