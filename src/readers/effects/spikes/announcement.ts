// The message that is published when a spike begins or ends.

import type { OutboxRow, SpikeRow } from "../types.ts";

/** The published JSON. Times are ISO 8601, UTC. */
export interface SpikeNews {
  readonly project: string;
  /** The word `project`, or a distinct id. */
  readonly subject: string;
  readonly change: "began" | "ended";
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly peak_per_minute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/** The message id is the same whenever the spike is detected, so that it is announced once. */
export function spikeAnnouncement(
  prefix: string,
  spike: SpikeRow,
  change: "began" | "ended",
): OutboxRow {
  const { projectId, subject, startedAtMs, endedAtMs } = spike;
  const named = encodeURIComponent(subject.toWellFormed());
  return {
    messageId: `spike/${projectId}/${named}/${startedAtMs}/${change}`,
    subject: `${prefix}.spike.${projectId}`,
    json: JSON.stringify({
      project: projectId,
      subject,
      change,
      started_at: new Date(startedAtMs).toISOString(),
      ended_at: endedAtMs === undefined ? null : new Date(endedAtMs).toISOString(),
      peak_per_minute: spike.peakPerMinute,
      baseline: spike.baseline,
      threshold: spike.threshold,
      events: spike.events,
    } satisfies SpikeNews),
  };
}
