// Usage as lines for a billing system: a CloudEvents 1.0 line per closed day, lane and class. The
// importer uses its id as the key to count it once (OpenMeter by `source` and `id`, Lago by
// `transaction_id`). Sends nothing.

import type { UsageDay } from "../store/port.ts";

/**
 * JSON texts without line ends, by day, lane and class. Days from `closedBefore` (`2026-11-22`) on
 * are excluded, because they may still grow. `revision` is 1, and incremented each time the same
 * days are exported with different numbers, for example after a rebuild. `source` names the
 * installation.
 *
 * `billable` in the data is whether the lane is billed. The time is the start of the day, so that a
 * sum by time counts it in that day.
 */
export function usageExport(
  days: readonly UsageDay[],
  options: {
    readonly projectId: string;
    readonly source: string;
    readonly closedBefore: string;
    readonly revision: number;
  },
): readonly string[] {
  const { projectId, source, closedBefore, revision } = options;
  const lines: [order: string, line: string][] = [];
  for (const { day, lane, class: usageClass, events, duplicates } of days) {
    if (day >= closedBefore) continue;
    const id = `${projectId}/${day}/${lane}/${usageClass}/${revision}`;
    const line = {
      specversion: "1.0",
      id,
      source,
      type: "penstock.usage",
      subject: projectId,
      time: `${day}T00:00:00Z`,
      datacontenttype: "application/json",
      data: {
        day,
        lane,
        class: usageClass,
        events,
        duplicates,
        billable: lane === "live",
        revision,
      },
    };
    lines.push([`${day} ${lane} ${usageClass}`, JSON.stringify(line)]);
  }
  return lines.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line);
}
