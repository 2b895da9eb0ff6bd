import { isDeepStrictEqual } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const eventCount = 45_000;

const gateway = await gatewayForFile();

function largeBatch(key: string, historical: boolean, sentAt: string): string {
  const batch = Array.from({ length: eventCount }, (_, index) => ({
    event: index % 3 === 0 ? "$pageview" : "button clicked",
    distinct_id: `user-${index % 977}`,
    timestamp: new Date(1_760_000_000_000 + index * 1_000).toISOString(),
    uuid: `0199b1c2-0000-7000-8000-${index.toString(16).padStart(12, "0")}`,
    properties: {
      index,
      $current_url: `https://example.com/path/${index}?q=${"é".repeat(8)}`,
      $browser: "Firefox",
      $os: "Linux",
      $screen_width: 1_920,
      text: "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore".slice(
        0,
        90,
      ),
      nested: { list: [1, 2, 3, { deep: true }], price: 12.75 },
    },
  }));
  return JSON.stringify({ api_key: key, historical_migration: historical, batch, sent_at: sentAt });
}

describe("a large batch", () => {
  describe.each([
    ["live", false],
    ["historical", true],
  ] as const)("of 19 MB in the %s stream", (lane, historical) => {
    test("is stored completely and in order", async () => {
      const project = await gateway.project();
      const body = largeBatch(project.key, historical, "2026-01-01T00:00:00.000Z");
      expect(Buffer.byteLength(body)).toBeGreaterThan(18_500_000);
      expect(Buffer.byteLength(body)).toBeLessThan(20_971_520);

      const first = await gateway.post("/batch/", body);
      expect(first.json).toEqual({ status: "Ok", accepted: eventCount, dropped: 0 });
      const retry = largeBatch(project.key, historical, "2026-01-01T00:00:07.000Z");
      const again = await gateway.post("/batch/", gzipSync(retry), { "content-encoding": "gzip" });
      expect(again.json).toEqual({ status: "Ok", accepted: eventCount, dropped: 0 });

      const frames = await gateway.frames(project, lane);
      const events = frames.flatMap((frame) => frame.events);
      expect(events).toHaveLength(eventCount);
      const sent = (
        JSON.parse(body) as { batch: { uuid: string; timestamp: string; properties: unknown }[] }
      ).batch;
      for (const [index, event] of events.entries()) {
        // The batch's time of sending is months ago, so every timestamp is corrected.
        if (
          event["uuid"] !== sent[index]?.uuid ||
          event["timestamp_sent"] !== sent[index]?.timestamp
        ) {
          expect(event).toMatchObject({
            uuid: sent[index]?.uuid,
            timestamp_sent: sent[index]?.timestamp,
          });
        }
      }
      // toEqual on all of them takes seconds.
      const changed = events.filter(
        ({ properties }, index) => !isDeepStrictEqual(properties, sent[index]?.properties),
      );
      expect(changed).toEqual([]);
      for (const frame of frames) {
        expect(frame.headers).toMatchObject({
          "Penstock-Events": String(frame.events.length),
          "Penstock-Schema": "1",
          "Content-Type": "application/x-ndjson",
        });
        expect(Buffer.byteLength(frame.text)).toBeLessThanOrEqual(gateway.config.frameBytesMax);
      }
    });
  });

  test("of more events than a scan table has rows is stored completely", async () => {
    const project = await gateway.project();
    const count = 140_000;
    const items = Array.from(
      { length: count },
      (_, index) => `{"event":"e","distinct_id":${index}}`,
    );
    const answer = await gateway.post(
      "/batch/",
      `{"api_key":"${project.key}","batch":[${items.join(",")}]}`,
    );
    expect(answer.json).toEqual({ status: "Ok", accepted: count, dropped: 0 });
    const events = await gateway.events(project);
    expect(events).toHaveLength(count);
    expect(events.every((event, index) => event["distinct_id"] === String(index))).toBe(true);
  });
});
