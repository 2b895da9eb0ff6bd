import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import { Header, ScanStatus } from "../../../src/records/table.ts";
import { backgroundOutcomeOf, outcomeOf } from "../../kit/scan-outcome.ts";
import { occupyThreadPool } from "../thread-pool.ts";

function batchOf(items: number, name: string): Buffer {
  const item = `{"event":"${name}","properties":{"a":[1,2.5,"é"],"$set":{}}}`;
  return Buffer.from(`{"batch":[${Array.from({ length: items }, () => item).join(",\n")}]}`);
}

describe("during a background scan", () => {
  test("the event loop runs while the scan waits for a pool thread", async () => {
    const body = batchOf(10, "a");
    const freeThreadPool = occupyThreadPool();
    const scan = createNativeScanner(10).scanInBackground(body);
    await setImmediate();
    // A scan removes line breaks, so the body is not scanned yet.
    expect(body.includes("\n")).toBe(true);
    await freeThreadPool();
    expect(await scan).toBe(ScanStatus.Ok);
    expect(body.includes("\n")).toBe(false);
  });

  test("several scanners work at the same time, each on its own body", async () => {
    const bodies = Array.from({ length: 8 }, (_, index) =>
      batchOf(2000 * (index + 1), `event-${index}`),
    );
    const refused = bodies.map((body) => body.subarray(0, body.length - 2));
    for (const texts of [bodies, refused]) {
      const outcomes = await Promise.all(
        texts.map((body) => backgroundOutcomeOf(createNativeScanner(1000), body)),
      );
      for (const [index, body] of texts.entries()) {
        expect(outcomes[index]).toEqual(outcomeOf(createNativeScanner(1000), body));
      }
    }
  });

  test("other scanners scan directly", async () => {
    const large = batchOf(100_000, "large");
    const [background, direct] = [createNativeScanner(), createNativeScanner(10)];
    let settled = false;
    const scan = background.scanInBackground(large).finally(() => {
      settled = true;
    });
    while (!settled) {
      expect(direct.scan(batchOf(10, "small"))).toBe(ScanStatus.Ok);
      await setImmediate();
    }
    expect([await scan, background.table[Header.ItemCount]]).toEqual([ScanStatus.Ok, 100_000]);
  });
});
