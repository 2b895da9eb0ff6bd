import type { SinkRecord } from "../../../../src/readers/sinks/sink-records.ts";
import type { SinkBatch } from "../../../../src/readers/sinks/sink-target.ts";
import { sinkRecord } from "../../../kit/sink-record.ts";
import { uuidOf } from "../../../kit/stored-events.ts";

export const stream = "PENSTOCK_LIVE_0";

export function sinkRecordOf(sequence: number, properties: object, storedAtMs: number): SinkRecord {
  const json = Buffer.from(JSON.stringify(properties));
  const { origin } = sinkRecord();
  return sinkRecord({
    stream,
    sequence,
    storedAtMs,
    timestampMs: storedAtMs,
    uuid: uuidOf(sequence),
    properties: json,
    origin: { ...origin, receivedAtMs: storedAtMs, ip: "203.0.113.7" },
  });
}

export function batchOf(events: readonly SinkRecord[], after: number): SinkBatch {
  const sequence = events.at(-1)?.sequence ?? after;
  const name = { stream, lane: "live", partition: 0, epoch: 1, created: "now" } as const;
  return {
    before: new Map(after === 0 ? [] : [[stream, { epoch: 1, sequence: after }]]),
    positions: [{ ...name, sequence, trail: [] }],
    events,
    rejected: [],
    incidents: [],
  };
}
