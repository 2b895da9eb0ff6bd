// The positions in ClickHouse. Each commit adds a row, and the furthest row counts.

import { lanes } from "../../../platform/nats/names.ts";
import type { SinkBatch, SinkPosition } from "../sink-target.ts";
import { mustBeNext } from "../sink-target.ts";
import type { ClickHouseClient } from "./client.ts";

const newest = "ORDER BY stream, version DESC, written_at DESC LIMIT 1 BY stream";

export async function readPositions(
  client: ClickHouseClient,
  database: string,
): Promise<SinkPosition[]> {
  const sql = `SELECT stream, lane, partition, epoch, created, sequence,
    trail_sequences, trail_message_ids, trail_stored_at_ms FROM ${database}.positions ${newest}`;
  const rows = await client.rows("read the positions in", sql);
  return rows.map(([stream, lane, partition, epoch, created, sequence, ...trail]) => {
    const [sequences, ids, times] = trail as [unknown[], unknown[], unknown[]];
    return {
      stream: String(stream),
      lane: lanes.find((one) => one === lane) ?? "live",
      partition: Number(partition),
      epoch: Number(epoch),
      created: String(created),
      sequence: Number(sequence),
      trail: sequences.map((one, index) => ({
        sequence: Number(one),
        messageId: String(ids[index]),
        storedAtMs: Number(times[index]),
      })),
    };
  });
}

/** Rejects with a MovedError if the batch does not start at the position in the table. */
export async function checkBefore(
  client: ClickHouseClient,
  database: string,
  batch: Pick<SinkBatch, "before" | "positions">,
): Promise<void> {
  const sql = `SELECT stream, epoch, sequence FROM ${database}.positions ${newest}`;
  const rows = await client.rows("read the positions in", sql);
  const there = new Map(
    rows.map(([stream, epoch, sequence]) => [
      String(stream),
      { epoch: Number(epoch), sequence: Number(sequence) },
    ]),
  );
  mustBeNext(batch, (stream) => there.get(stream));
}

/** One block is inserted as a whole or not at all. */
export function positionRows(positions: readonly SinkPosition[]): string {
  return positions
    .map(({ trail, ...position }) => {
      const arrays = {
        trail_sequences: trail.map(({ sequence }) => sequence),
        trail_message_ids: trail.map(({ messageId }) => messageId),
        trail_stored_at_ms: trail.map(({ storedAtMs }) => storedAtMs),
      };
      const { stream, lane, partition, epoch, created, sequence } = position;
      const row = { stream, lane, partition, epoch, created, sequence };
      return `${JSON.stringify({ ...row, ...arrays })}\n`;
    })
    .join("");
}
