// Finds events that an interrupted batch has written without its positions. Queries only messages
// up to the furthest one with rows.

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

/** Maximum step in ms of a server's clock back between two messages. */
const clockSlackMs = 3_600_000;

export class WrittenRows {
  readonly #client: ClickHouseClient;
  readonly #events: string;
  /** Furthest message of each stream that has rows. */
  #ends = new Map<string, number>();

  constructor({ client, database }: WrittenRowsOptions) {
    this.#client = client;
    this.#events = `${database}.events`;
  }

  /** The query has the id of the inserts, so no insert runs at the same time. */
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
        // The uuid tells apart messages of two streams with the same sequence. `penstock erase`
        // changes the numbers of later lines, so they are not compared.
        there.has([stream, sequence, projectId, uuid, event, distinctId].join("\n")),
      ),
    );
  }

  /** An interrupted batch may have been the first of a stream without a position. */
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

  /** Returns the furthest message of each stream with rows since `fromMs`; 0 if there is none. */
  async #endsOf(places: readonly Since[], queryId?: string): Promise<Map<string, number>> {
    // Only the newest parts have rows of this time, so the others are not read.
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
