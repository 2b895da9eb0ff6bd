import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { loadAddon } from "../../../src/records/native.ts";
import { ScanStatus, tableWords } from "../../../src/records/table.ts";
import { occupyThreadPool } from "../thread-pool.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const text = `{"batch":[${'{"event":"a"},'.repeat(70_000)}0]}`;

interface Started {
  readonly scan: Promise<ScanStatus>;
  readonly watched: readonly WeakRef<object>[];
}

// In a separate function, so that only the scan holds references to its data.
function startScan(): Started {
  const table = new Uint32Array(tableWords(1));
  const scanner = new (loadAddon().EventScanner)(table);
  const body = Buffer.from(text);
  return {
    scan: scanner.scanInBackground(body),
    watched: [scanner, table, table.buffer, body, body.buffer].map((value) => new WeakRef(value)),
  };
}

function alive(started: readonly Started[]): number {
  return started
    .flatMap(({ watched }) => watched)
    .filter((reference) => reference.deref() !== undefined).length;
}

describe("garbage collection during a background scan", () => {
  test("retains the data of the scan until the scan ends", async () => {
    const freeThreadPool = occupyThreadPool();
    const started = [startScan(), startScan(), startScan()];
    for (let turn = 0; turn < 3; turn += 1) {
      await setImmediate();
      collectGarbage();
    }
    expect(alive(started)).toBe(15);
    await freeThreadPool();
    const statuses = await Promise.all(started.map(({ scan }) => scan));
    expect(statuses).toEqual([ScanStatus.Ok, ScanStatus.Ok, ScanStatus.Ok]);
    const deadlineMs = Date.now() + 10_000;
    while (alive(started) > 0 && Date.now() < deadlineMs) {
      await setImmediate();
      collectGarbage();
    }
    expect(alive(started)).toBe(0);
  });

  test("does not affect the result even if memory is reused", async () => {
    const started: Promise<ScanStatus>[] = [];
    for (let round = 0; round < 20; round += 1) {
      started.push(startScan().scan);
      // Overwrites memory that was freed too early.
      Buffer.alloc(text.length, "}");
      if (round % 4 === 0) {
        await setImmediate();
        collectGarbage();
      }
    }
    expect(new Set(await Promise.all(started))).toEqual(new Set([ScanStatus.Ok]));
  });
});
