// Finds the events that were written by an interrupted batch, whose positions were not written.

import { lanes } from "../../../platform/nats/names.ts";
import type { SinkRecord } from "../sink-records.ts";
import { mustBeNext, type SinkBatch, type SinkPosition } from "../sink-target.ts";
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

/** Returns one block of rows, because ClickHouse inserts a block completely or not at all. */
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

interface Since {
  readonly stream: string;
  readonly fromMs: number;
}

const clockSlackMs = 3_600_000;

export class WrittenRows {
  readonly #client: ClickHouseClient;
  readonly #events: string;
  #ends = new Map<string, number>();

  constructor(client: ClickHouseClient, database: string) {
    this.#client = client;
    this.#events = `${database}.events`;
  }

  /**
   * Finds the last message of each stream whose rows exist. The caller must ensure that no insert
   * with `queryId` is running.
   */
  async open(positions: readonly SinkPosition[], queryId: string): Promise<void> {
    const places = positions.flatMap(({ stream, trail }) => {
      const writtenAtMs = trail.at(-1)?.storedAtMs;
      return writtenAtMs === undefined ? [] : [{ stream, fromMs: writtenAtMs }];
    });
    this.#ends = await this.#endsOf(places, queryId);
  }

  async of(events: readonly SinkRecord[]): Promise<Set<SinkRecord>> {
    await this.#askUnknown(events);
    const asked = events.filter(
      ({ stream, sequence }) => sequence <= (this.#ends.get(stream) ?? 0),
    );
    if (asked.length === 0) return new Set();
    const streams = new Map<string, { from: number; to: number }>();
    let [fromMs, toMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const { stream, sequence, storedAtMs } of asked) {
      const { from, to } = streams.get(stream) ?? { from: sequence, to: sequence };
      streams.set(stream, { from: Math.min(from, sequence), to: Math.max(to, sequence) });
      fromMs = Math.min(fromMs, storedAtMs);
      toMs = Math.max(toMs, storedAtMs);
    }
    const places = [...streams].map(
      ([stream, { from, to }]) =>
        `(stream = '${escaped(stream)}' AND sequence BETWEEN ${from} AND ${to})`,
    );
    const sql = `SELECT stream, sequence, project_id, toString(uuid), event, distinct_id FROM ${this.#events}
      WHERE stored_at >= ${seconds(fromMs, Math.floor)} AND stored_at <= ${seconds(toMs, Math.ceil)}
        AND (${places.join(" OR ")})`;
    const rows = await this.#client.rows("read what was written in", sql);
    const there = new Set(rows.map((row) => row.join("\n")));
    return new Set(
      asked.filter(({ stream, sequence, projectId, uuid, event, distinctId }) =>
        // The events are compared, because sequences repeat if a stream was recreated. The line
        // numbers are not compared, because `penstock erase` changes them.
        there.has([stream, sequence, projectId, uuid, event, distinctId].join("\n")),
      ),
    );
  }

  async #askUnknown(events: readonly SinkRecord[]): Promise<void> {
    const places = new Map<string, Since>();
    for (const { stream, storedAtMs } of events) {
      if (this.#ends.has(stream)) continue;
      const fromMs = Math.min(storedAtMs, places.get(stream)?.fromMs ?? storedAtMs);
      places.set(stream, { stream, fromMs });
    }
    if (places.size === 0) return;
    for (const [stream, end] of await this.#endsOf([...places.values()]))
      this.#ends.set(stream, end);
  }

  async #endsOf(places: readonly Since[], queryId?: string): Promise<Map<string, number>> {
    // The condition on the time lets the server skip the older parts of the table.
    const conditions = places.map(
      ({ stream, fromMs }) =>
        `(stream = '${escaped(stream)}' AND stored_at >= ${seconds(fromMs - clockSlackMs, Math.floor)})`,
    );
    const where = conditions.length === 0 ? "0" : conditions.join(" OR ");
    const sql = `SELECT stream, max(sequence) FROM ${this.#events} WHERE ${where} GROUP BY stream`;
    const options = queryId === undefined ? {} : { queryId };
    const rows = await this.#client.rows("read what was written in", sql, options);
    const there = new Map(rows.map(([stream, end]) => [String(stream), Number(end)]));
    return new Map(places.map(({ stream }) => [stream, there.get(stream) ?? 0]));
  }
}

function seconds(ms: number, round: (value: number) => number): string {
  return `toDateTime(${Math.max(0, round(ms / 1_000))}, 'UTC')`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
}
