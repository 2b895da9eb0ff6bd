// What should be in the target of a sink, and what is there, for tests and fault scenarios.

import { asked } from "./postgres-rows.ts";
import type { TestFrame } from "./stored-events.ts";

export const sinkSchema = "penstock";

/** Each event once, as `project uuid lane name properties`. */
export function eventsIn(frames: readonly TestFrame[]): string[] {
  const lines = frames.flatMap(({ projectId, lane, events }) =>
    events.map(({ uuid, event = "seen", properties = {} }) => {
      return `${projectId} ${uuid} ${lane} ${event} ${shownProperties(properties)}`;
    }),
  );
  return [...new Set(lines)].sort();
}

/** As `eventsIn` has them. */
export async function eventsAt(url: string): Promise<string[]> {
  const rows = await asked(
    url,
    `SELECT project_id, uuid, historical, event, properties FROM ${sinkSchema}.events`,
  );
  return rows
    .map(({ project_id: project, uuid, historical, event, properties }) =>
      [
        ...[project, uuid, historical === true ? "historical" : "live", event],
        shownProperties(properties),
      ].join(" "),
    )
    .sort();
}

/** How far each stream is. */
export async function positionsAt(url: string): Promise<Record<string, number>> {
  const rows = await asked(url, `SELECT stream, sequence FROM ${sinkSchema}.positions`);
  return Object.fromEntries(rows.map(({ stream, sequence }) => [stream, Number(sequence)]));
}

export function shownProperties(properties: unknown): string {
  return JSON.stringify(sorted(properties));
}

/** With its names in order, as a database that keeps no order may give it back in any. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
