import { expect, test } from "vitest";
import { rowsFileBytes, rowsOf } from "../../../../src/readers/sinks/parquet/rows.ts";
import type { SinkRecord } from "../../../../src/readers/sinks/sink-records.ts";
import { sinkRecord } from "../../../kit/sink-record.ts";

const json = (bytes: number) => Buffer.from(JSON.stringify({ text: "x".repeat(bytes) }));
const storedAtMs = Date.UTC(2026, 10, 23, 12);

function event(projectId: string, properties: Uint8Array): SinkRecord {
  return sinkRecord({ storedAtMs, projectId, properties });
}

test("rows are grouped by project and day in any order of events", () => {
  const events = ["a", "b", "a"].map((project) => event(project, json(1)));
  const { runs, bytes } = rowsOf({ events, rejected: [], incidents: [] }, 0);
  expect(runs.map(({ folder, rows }) => [folder, rows])).toEqual([
    ["events/project_id=a/day=2026-11-23", 2],
    ["events/project_id=b/day=2026-11-23", 1],
  ]);
  expect(runs.reduce((sum, run) => sum + run.bytes, 0)).toBe(bytes.length);
});

test("large rows are distributed over several files", () => {
  const long = json(1_000_000);
  const events = Array.from({ length: 40 }, () => event("a", long));
  const { runs, bytes, rowBytesMax } = rowsOf({ events, rejected: [], incidents: [] }, 0);
  expect(runs.map(({ rows }) => rows)).toEqual([17, 17, 6]);
  for (const run of runs) expect(run.bytes).toBe(run.rows * rowBytesMax);
  expect(runs[0]!.bytes).toBeLessThan(rowsFileBytes + rowBytesMax);
  expect(bytes.length).toBe(40 * rowBytesMax);
});

test("each row has its own times, address, kind and flags", () => {
  const base = event("a", json(1));
  const changes: Partial<SinkRecord["origin"]>[] = [
    {},
    { receivedAtMs: 1 },
    { timestampSentMs: 2 },
    { sentAtMs: 3 },
    { ip: "127.0.0.1" },
    { ip: "" },
    { kind: "$identify" },
    { personProfile: false },
    { historical: true },
    {},
    { receivedAtMs: 1 },
    { sentAtMs: 0 },
    {},
  ];
  const events = changes.map((change) => ({ ...base, origin: { ...base.origin, ...change } }));
  events.splice(11, 0, { ...base, storedAtMs: storedAtMs + 1 });
  const all = rowsOf({ events, rejected: [], incidents: [] }, 0).bytes.toString();
  const alone = events.map((one) =>
    rowsOf({ events: [one], rejected: [], incidents: [] }, 0).bytes.toString(),
  );
  expect(all).toBe(alone.join(""));
  expect(new Set(alone).size).toBe(10);
});
