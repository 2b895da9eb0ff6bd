// An event as the sinks hold it, for tests that read none from a stream.

import type { SinkRecord } from "../../src/readers/sinks/sink-records.ts";

const storedAtMs = Date.UTC(2026, 10, 23, 12);

export function sinkRecord(wanted: Partial<SinkRecord> = {}): SinkRecord {
  const properties = wanted.properties ?? Buffer.from("{}");
  return {
    ...{ stream: "PENSTOCK_LIVE_0", sequence: 1, line: 0, storedAtMs, projectId: "shop" },
    ...{ uuid: "00000000-0000-4000-8000-000000000001", event: "seen", distinctId: "d" },
    ...{ timestampMs: 0, receivedAtMs: 0, timestampSentMs: Number.NaN, sentAtMs: Number.NaN },
    ...{ ip: "", kind: "custom", personProfile: true, historical: false, personUuid: "" },
    ...{ properties, set: undefined, setOnce: undefined, unset: undefined, text: properties },
    ...wanted,
  };
}
