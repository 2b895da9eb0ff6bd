import { expect, test } from "vitest";
import { filesOf, Segment } from "../../../../src/readers/sinks/parquet/segment.ts";
import { newFolder } from "./parquet-kit.ts";

const first = { number: 1, positions: [], incidents: [] };
const batch = {
  bytes: Buffer.from("rows"),
  rowBytesMax: 4,
  runs: [],
  positions: [],
  incidents: [],
};
const hourMs = 3_600_000;

test("a segment began when the clock was ahead: it is as old as a clock that was set back says", async () => {
  const segment = await Segment.begin(filesOf(newFolder(), 1), first);
  const nowMs = Date.now();
  await segment.append(batch, nowMs + hourMs);
  await segment.append(batch, nowMs);
  expect(segment.begunAtMs).toBe(nowMs);
  await segment.append(batch, nowMs + 1_000);
  expect(segment.begunAtMs).toBe(nowMs);
  await segment.close();
});

test.each([
  ["and was set back before it ended", [hourMs, -1_000], -1_000],
  ["and was set back while nothing ran", [hourMs, hourMs + 1], 0],
])("a segment that is read again began when the clock was ahead, %s", async (_, ahead, begun) => {
  const files = filesOf(newFolder(), 1);
  const segment = await Segment.begin(files, first);
  const nowMs = Date.now();
  for (const ms of ahead) await segment.append(batch, nowMs + ms);
  await segment.close();
  const again = await Segment.resume(files);
  expect(again.begunAtMs).toBeGreaterThanOrEqual(nowMs + begun);
  expect(again.begunAtMs).toBeLessThanOrEqual(Date.now() + begun);
  await again.close();
});
