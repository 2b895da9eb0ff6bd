// Exports usage for a billing system. The output has one CloudEvents 1.0 line for each closed day,
// lane and class. Importers deduplicate by `source` and `id` (OpenMeter), or by `transaction_id`
// (Lago).

import type { UsageDay } from "../store/port.ts";

/**
 * Converts days to lines. Skips the days from `closedBefore` on, because their numbers may still
 * grow.
 *
 * If the same days are exported again with different numbers, for example after a rebuild, the
 * caller must increment `revision`.
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
  const closed = days.filter(({ day }) => day < closedBefore);
  return closed.map(({ day, lane, class: usageClass, events, duplicates }) =>
    JSON.stringify({
      specversion: "1.0",
      id: `${projectId}/${day}/${lane}/${usageClass}/${revision}`,
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
    }),
  );
}
