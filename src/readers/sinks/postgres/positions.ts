// The positions in PostgreSQL. A write fails unless the stored position is the position for which
// the batch was built. So if two sinks are active, one of them fails.

import type { Client } from "pg";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import type { TrailEntry } from "../../stream/resume.ts";
import { type Before, movedFrom, type SinkPosition } from "../sink-target.ts";

interface WrittenPositions {
  readonly before: Before;
  readonly positions: readonly SinkPosition[];
  readonly trailEnds: ReadonlyMap<string, SinkPosition>;
}

const moveSql = `UPDATE positions SET epoch = $4, created = $5, sequence = $6, written_at = now()
  WHERE stream = $1 AND epoch = $2 AND sequence = $3`;
const beginSql = `INSERT INTO positions (stream, lane, partition, epoch, created, sequence)
  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`;
const trailSql = `INSERT INTO trails (stream, sequence, message_id, stored_at_ms)
  SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[])`;

export async function readPositions(client: Client): Promise<SinkPosition[]> {
  const { rows: entries } = await client.query<TrailEntry & Pick<SinkPosition, "stream">>(
    `SELECT stream, sequence, message_id AS "messageId", stored_at_ms AS "storedAtMs"
      FROM trails ORDER BY stream, sequence`,
  );
  const trails = Map.groupBy(entries, ({ stream }) => stream);
  const { rows } = await client.query<Omit<SinkPosition, "trail">>(
    "SELECT stream, lane, partition, epoch, created, sequence FROM positions ORDER BY stream",
  );
  return rows.map((row) => ({ ...row, trail: trails.get(row.stream) ?? [] }));
}

export async function writePositions(
  client: Client,
  { before, positions, trailEnds }: WrittenPositions,
): Promise<void> {
  for (const position of positions) {
    const { stream, lane, partition, epoch, created, sequence } = position;
    const was = before.get(stream);
    const { rowCount } =
      was === undefined
        ? await client.query(beginSql, [stream, lane, partition, epoch, created, sequence])
        : await client.query(moveSql, [stream, was.epoch, was.sequence, epoch, created, sequence]);
    if (rowCount !== 1) throw movedFrom(stream, was);
    await writeTrail(client, position, trailEnds.get(stream));
  }
}

async function writeTrail(
  client: Client,
  { stream, epoch, trail }: SinkPosition,
  known: SinkPosition | undefined,
): Promise<void> {
  // In another epoch, the same sequences belong to other messages.
  const isSame = known?.epoch === epoch;
  const end = isSame ? (known.trail.at(-1)?.sequence ?? 0) : 0;
  const added = trail.filter(({ sequence }) => sequence > end);
  const from = isSame ? (trail[0]?.sequence ?? 0) : Number.MAX_SAFE_INTEGER;
  await client.query("DELETE FROM trails WHERE stream = $1 AND sequence < $2", [stream, from]);
  if (added.length === 0) return;
  const values = (["sequence", "messageId", "storedAtMs"] as const).map((name) =>
    arrayOf(added.map((entry) => entry[name])),
  );
  await client.query(trailSql, [stream, ...values]);
}
