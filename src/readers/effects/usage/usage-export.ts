// Exports usage for a billing system: one CloudEvents 1.0 line per closed day, lane and class.
// Importers deduplicate the lines by their ids (OpenMeter by `source` and `id`, Lago by
// `transaction_id`).

import type { UsageDay } from "../store/port.ts";

/**
 * Excludes days from `closedBefore`, whose numbers may still grow. `revision` must be incremented
 * whenever the same days are exported with different numbers, for example after a rebuild. The time
 * is the start of the day, so that a sum by time counts the line in this day.
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
