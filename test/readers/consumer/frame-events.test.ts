import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { afterAll, expect, test } from "vitest";
import { frameEvents, UuidWindow } from "../../../src/readers/consumer/frame-events.ts";

// Node has crypto.hash since 20.12, and the package also runs on earlier versions of 20.
const { hash } = crypto;
setHash(undefined);
afterAll(() => setHash(hash));

function setHash(value: typeof crypto.hash | undefined): void {
  Object.assign(crypto, { hash: value });
  syncBuiltinESMExports();
}

class ToldWindow extends UuidWindow {
  readonly keys: string[] = [];

  override duplicateOf(key: string, frame: number): number | undefined {
    this.keys.push(key);
    return super.duplicateOf(key, frame);
  }
}

function frameOf(names: readonly { readonly event: string; readonly id: string }[]): Buffer {
  const lines = names.map(({ event, id }) =>
    JSON.stringify({
      uuid: "u",
      project_id: "shop",
      event,
      distinct_id: id,
      properties: {},
      timestamp: "2026-01-02T03:04:05.000Z",
      received_at: "2026-01-02T03:04:05.000Z",
    }),
  );
  return Buffer.from(`${lines.join("\n")}\n`);
}

test("deduplication keys have a constant size", () => {
  const window = new ToldWindow({ maxUuids: 100, windowMs: 1_000, monotonicMs: () => 0 });
  const long = "n".repeat(500_000);
  const data = frameOf([
    { event: "e", id: "d" },
    { event: long, id: "d" },
    { event: `${long}n`, id: "d" },
    { event: "e", id: long },
    // If the fields were only concatenated, these two events would have the same key.
    { event: "a", id: "bc" },
    { event: "ab", id: "c" },
  ]);
  const options = { projects: undefined, window, isWhole: false };
  expect(frameEvents(data, { ...options, frame: 1 }).events).toHaveLength(6);
  expect(new Set(window.keys.map((key) => key.length)).size).toBe(1);
  expect(window.keys[0]!.length).toBeLessThan(100);
  expect(frameEvents(data, { ...options, frame: 2 })).toMatchObject({ events: [], duplicates: 6 });
});

function windowAt(clock: { ms: number }, maxUuids = 3): UuidWindow {
  return new UuidWindow({ maxUuids, windowMs: 1_000, monotonicMs: () => clock.ms });
}

test("the deduplication window finds a duplicate in another frame of the project", () => {
  const window = windowAt({ ms: 0 });
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("other/a", 2)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 3)).toBe(1);
});

test("the deduplication window drops its oldest event when it is full", () => {
  const window = windowAt({ ms: 0 });
  for (const uuid of ["a", "b", "c", "d"]) window.duplicateOf(`shop/${uuid}`, 1);
  expect(window.size).toBe(3);
  expect(window.duplicateOf("shop/b", 2)).toBe(1);
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
});

test("the deduplication window forgets an event after its time limit", () => {
  const clock = { ms: 0 };
  const window = windowAt(clock);
  window.duplicateOf("shop/a", 1);
  clock.ms = 999;
  expect(window.duplicateOf("shop/a", 2)).toBe(1);
  clock.ms = 1_000;
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
  expect(window.size).toBe(1);
});

test("the deduplication window remembers nothing if its size is 0", () => {
  const window = windowAt({ ms: 0 }, 0);
  expect(window.duplicateOf("shop/a", 1)).toBeUndefined();
  expect(window.duplicateOf("shop/a", 2)).toBeUndefined();
  expect(window.size).toBe(0);
});
