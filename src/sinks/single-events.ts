// The events of a batch with each uuid of a project once: the first of those that are the same.

import type { SinkRecord } from "./sink-target.ts";

export function singleEvents(events: readonly SinkRecord[]): SinkRecord[] {
  const seen = new Set<string>();
  return events.filter(({ uuid, projectId }) => {
    const key = `${uuid}${projectId}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
