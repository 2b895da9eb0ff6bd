// Finds events of a batch that are already in the table because a previous batch was interrupted
// before its positions were written. Queries only messages up to the furthest one that the table
// had when it was opened. Without an interruption, nothing is queried.

import type { SinkRecord } from "../sink-records.ts";
import type { SinkPosition } from "../sink-target.ts";
import type { ClickHouseClient } from "./client.ts";

interface WrittenRowsOptions {
  readonly client: ClickHouseClient;
  readonly database: string;
}

interface Since {
  readonly stream: string;
  readonly fromMs: number;
}

/** Maximum time in ms by which a server's clock may have been set back between two messages. */
const clockSlackMs = 3_600_000;

export class WrittenRows {
  readonly #client: ClickHouseClient;
  readonly #events: string;
  /** Sequence of the furthest message of each stream that has rows. */
  #ends = new Map<string, number>();

  constructor({ client, database }: WrittenRowsOptions) {
    this.#client = client;
    this.#events = `${database}.events`;
  }

  /**
   * Reads the furthest message of each stream. The query has the id of the inserts, so it does not
   * run while an insert is running.
   */
  async open(positions: readonly SinkPosition[], queryId: string): Promise<void> {
    const places = positions.flatMap(({ stream, trail }) => {
      const writtenAtMs = trail.at(-1)?.storedAtMs;
      return writtenAtMs === undefined ? [] : [{ stream, fromMs: writtenAtMs }];
    });
    this.#ends = await this.#endsOf(places, queryId);
  }

  /** Returns the events that are in the table. */
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
        // The uuid distinguishes a message from one that had the same sequence in an earlier
        // stream. The line number is not compared, because it changes if `penstock erase` removes
        // an earlier line.
        there.has([stream, sequence, projectId, uuid, event, distinctId].join("\n")),
      ),
    );
  }

  /**
   * Reads the furthest message of streams without a position. The interrupted batch may have been
   * the first batch of such a stream.
   */
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

  /**
   * Returns the sequence of the furthest message of each stream that has rows since `fromMs`; 0 if
   * no row exists.
   */
  async #endsOf(places: readonly Since[], queryId?: string): Promise<Map<string, number>> {
    // Each part has the time range of its rows, so only the newest parts are read.
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
