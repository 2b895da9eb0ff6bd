// What is put aside of an event that the target does not take: all of it, with where it stands and
// what the target said.

import type { RejectedLine, SinkRecord } from "./sink-records.ts";

export function refusedLine(event: SinkRecord, detail: string): RejectedLine {
  const { stream, sequence, line, storedAtMs, projectId, text } = event;
  return { stream, sequence, line, storedAtMs, projectId, reason: "value", detail, text };
}
