// What the tests of the sink in PostgreSQL share: databases, and what is in them.

import { asked } from "../../effects/store/postgres-rig.ts";
import { sorted } from "../sink-kit.ts";

export const schema = "penstock";

/** As `eventsIn` has them. */
export async function eventsAt(url: string): Promise<string[]> {
  const rows = await asked(
    url,
    `SELECT project_id, uuid, historical, event, properties FROM ${schema}.events`,
  );
  return rows
    .map(({ project_id: project, uuid, historical, event, properties }) =>
      [
        ...[project, uuid, historical === true ? "historical" : "live", event],
        JSON.stringify(sorted(properties)),
      ].join(" "),
    )
    .sort();
}

/** How far each stream is. */
export async function positionsAt(url: string): Promise<Record<string, number>> {
  const rows = await asked(url, `SELECT stream, sequence FROM ${schema}.positions`).catch(() => []);
  return Object.fromEntries(rows.map(({ stream, sequence }) => [stream, Number(sequence)]));
}
