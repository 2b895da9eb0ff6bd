import type { SinkRecord } from "../../src/readers/sinks/sink-records.ts";

const storedAtMs = Date.UTC(2026, 10, 23, 12);

const times = { receivedAtMs: 0, timestampSentMs: Number.NaN, sentAtMs: Number.NaN };
const sender = { ip: "", kind: "custom", personProfile: true, historical: false };

export function sinkRecord(wanted: Partial<SinkRecord> = {}): SinkRecord {
  const properties = wanted.properties ?? Buffer.from("{}");
  return {
    stream: "PENSTOCK_LIVE_0",
    sequence: 1,
    line: 0,
    storedAtMs,
    projectId: "shop",
    uuid: "00000000-0000-4000-8000-000000000001",
    event: "seen",
    distinctId: "d",
    timestampMs: 0,
    personUuid: "",
    origin: { ...times, ...sender },
    properties,
    set: undefined,
    setOnce: undefined,
    unset: undefined,
    text: properties,
    ...wanted,
  };
}
