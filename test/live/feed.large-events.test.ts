import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { JsMsg } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { Feed } from "../../src/live/feed.ts";

const largeChars = 500_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapAfterCollection(): number {
  collect();
  return getHeapStatistics().used_heap_size;
}

function frameOf(index: number): JsMsg {
  const head = `{"uuid":"${index}","project_id":"shop","event":"${String(index).padEnd(300, "é")}","distinct_id":"u","kind":"custom"`;
  const data = Buffer.from(`${head},"properties":{"many":"€${String(index).repeat(largeChars)}"}}`);
  const headers = new Map([["Penstock-Events", "1"]]);
  return { subject: "penstock.live.0.shop", headers, data } as unknown as JsMsg;
}

describe("the live feed", () => {
  test("holds only the start of each of 50 large events", () => {
    const feed = new Feed({ project: "shop" }, () => 0);
    feed.take(frameOf(0));
    const before = heapAfterCollection();
    for (let index = 1; index < 50; index++) feed.take(frameOf(index));
    const grown = heapAfterCollection() - before;
    // The limit is twice the size of these texts. Slices of the decoded parts would take three
    // times as much.
    expect(grown).toBeLessThan(1_000_000);
    const kept = feed.recent();
    expect(kept.map(({ event }) => event)).toEqual(
      kept.map((_, index) => String(index).padEnd(200, "é")),
    );
    for (const { text, bytes, isCut } of kept)
      expect([text.length, bytes > largeChars, isCut]).toEqual([4_096, true, true]);
    expect(kept).toHaveLength(50);
  });

  test.each(["€", "é", "x", "😀"])("truncates text of %s at a character boundary", (character) => {
    const feed = new Feed({}, () => 0);
    const record = (chars: number): string => {
      const start = `{"event":"e","properties":{"p":"`;
      return `${start}${character.repeat((chars - start.length - 3) / character.length)}"}}`;
    };
    const whole = record(4_096 - (character.length - 1));
    const lines = [whole, record(5_000)];
    const headers = new Map([["Penstock-Events", "2"]]);
    feed.take({ subject: "s", headers, data: Buffer.from(lines.join("\n")) } as unknown as JsMsg);
    const [short, long] = feed.recent();
    expect([short?.text, short?.isCut]).toEqual([whole, false]);
    expect([long?.text.length, long?.isCut]).toEqual([4_096, true]);
    expect(lines[1]?.startsWith(long?.text.slice(0, 4_095) ?? "-")).toBe(true);
  });
});
